import { RedirectError } from './errors/redirect-error.ts'
import { parseUrl } from './http-url.ts'
import type { Transport } from './transport.ts'
import type { UploadBody } from './upload-body.ts'
import type { Watch } from './watch.ts'

/** One request of the client, with the redirects that it may meet. */
export interface Request {
  readonly method: 'GET' | 'HEAD' | 'POST' | 'PATCH' | 'DELETE'
  readonly url: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: UploadBody
  /** Whether it may be led to another origin, where it goes without the token. */
  readonly mayLeave?: boolean
}

/** The token, and the one origin that may have it. */
export interface Credential {
  readonly token: string
  readonly origin: string
}

const redirects = new Set([301, 302, 303, 307, 308])
const mostHops = 5

/**
 * Sends a request and follows its redirects by hand, so that the token reaches no other origin. Throws a
 * `RedirectError` where it does not follow: to another origin, in circles, with a body that is gone.
 */
export async function exchange(
  credential: Credential,
  request: Request,
  transport: Transport,
  watch: Watch,
): Promise<Response> {
  const { method, body } = request
  let { url } = request
  let trusted = new URL(url).origin === credential.origin
  for (let hop = 0; hop <= mostHops; hop += 1) {
    const headers = new Headers(request.headers)
    if (trusted) headers.set('authorization', `Bearer ${credential.token}`)
    const redirect = trusted ? 'manual' : 'follow'
    const answer = await transport({ method, url, headers, body, redirect }, watch)
    const next = redirectOf(answer, url, request, credential.origin)
    if (!next) return answer
    answer.body?.cancel().catch(() => {})
    // Never again once it was elsewhere, not even back at home.
    trusted &&= next.origin === credential.origin
    url = next.href
  }
  throw new RedirectError(request.url, url, `The service redirects more than ${mostHops} times`)
}

/** Where an answer leads, null when it leads nowhere; throws a `RedirectError` where the request must not go. */
function redirectOf(answer: Response, url: string, request: Request, origin: string): URL | null {
  if (answer.type === 'opaqueredirect') {
    throw new RedirectError(url, null, 'The service redirects, and browsers hide where to; use the final URL')
  }
  const location = redirects.has(answer.status) ? answer.headers.get('location') : null
  if (location === null) return null

  const next = parseUrl(location, url)
  const refuse = (reason: string) =>
    new RedirectError(url, next?.href ?? location, `The service redirects ${reason}`)
  if (!next || !/^https?:$/.test(next.protocol) || next.username || next.password) {
    throw refuse('to what is no http or https URL')
  }
  if (next.origin !== origin && !request.mayLeave) {
    throw refuse(`to ${next.origin}; create the client with that URL if it shall have the token`)
  }
  if (request.method !== 'GET' && answer.status < 307) {
    throw refuse(`a ${request.method} in a way (${answer.status}) that may turn it into a GET`)
  }
  if (request.body && !request.body.content.blob) throw refuse('an upload whose stream cannot be sent again')
  return next
}
