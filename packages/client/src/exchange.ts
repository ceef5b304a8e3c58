import { RedirectError } from './errors/redirect-error.ts'
import { parseUrl } from './http-url.ts'
import type { Transport } from './transport.ts'
import type { UploadBody } from './upload-body.ts'
import type { Watch } from './watch.ts'

/** One request of the client, with the redirects that it may meet. */
export interface Request {
  readonly method: 'GET' | 'POST' | 'DELETE'
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
  { token, origin }: Credential,
  { method, url: first, headers: fixed, body, mayLeave = false }: Request,
  transport: Transport,
  watch: Watch,
): Promise<Response> {
  let url = first
  let trusted = new URL(url).origin === origin
  for (let hop = 0; hop <= mostHops; hop += 1) {
    const headers = new Headers(fixed)
    if (trusted) headers.set('authorization', `Bearer ${token}`)
    const redirect = trusted ? 'manual' : 'follow'
    const answer = await transport({ method, url, headers, body, redirect }, watch)
    if (answer.type === 'opaqueredirect') {
      throw new RedirectError(
        url,
        null,
        'The service redirects, and a browser hides where to; use the final URL',
      )
    }
    const location = redirects.has(answer.status) ? answer.headers.get('location') : null
    if (location === null) return answer

    answer.body?.cancel().catch(() => {})
    const next = parseUrl(location, url)
    const refuse = (reason: string) => new RedirectError(url, next?.href ?? location, reason)
    if (!next || !/^https?:$/.test(next.protocol) || next.username || next.password) {
      throw refuse('The service redirects to what is no http or https URL')
    }
    if (next.origin !== origin && !mayLeave) {
      throw refuse(
        `The service redirects to ${next.origin}; create the client with that URL if it shall have the token`,
      )
    }
    if (method !== 'GET' && answer.status < 307) {
      throw refuse(
        `The service redirects a ${method} in a way (${answer.status}) that may turn it into a GET`,
      )
    }
    if (body && !body.content.blob)
      throw refuse('The service redirects an upload whose stream cannot be sent again')
    trusted &&= next.origin === origin
    url = next.href
  }
  throw new RedirectError(first, url, `The service redirects more than ${mostHops} times`)
}
