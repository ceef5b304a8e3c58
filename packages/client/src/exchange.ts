import type { AttemptTimer } from './attempt-timer.ts'
import { RedirectError } from './errors/redirect-error.ts'
import { parseUrl } from './http-url.ts'
import { requireToken } from './require-token.ts'
import type { Transport } from './transport.ts'
import type { UploadBody } from './upload-body.ts'

/** One request of the client, including its redirects. */
export interface Request {
  readonly method: 'GET' | 'HEAD' | 'POST' | 'PATCH' | 'DELETE'
  readonly url: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: UploadBody
  /** Whether a redirect to another origin is followed, without the token. */
  readonly mayLeaveOrigin?: boolean
}

/** The token, and the only origin that receives it. */
export interface Credential {
  readonly token: () => string | Promise<string>
  readonly origin: string
}

const redirectStatuses = new Set([301, 302, 303, 307, 308])
const maxRedirects = 5

/**
 * Sends a request and follows its redirects itself, so that no other origin receives the token. Throws a
 * `RedirectError` for a redirect to another origin, for too many redirects, and for a body that cannot be sent again.
 */
export async function exchange(
  credential: Credential,
  request: Request,
  transport: Transport,
  timer: AttemptTimer,
): Promise<Response> {
  const { method, body } = request
  let { url } = request
  let trusted = new URL(url).origin === credential.origin
  for (let redirects = 0; redirects <= maxRedirects; redirects += 1) {
    const headers = new Headers(request.headers)
    if (trusted) {
      const current = credential.token()
      const token = typeof current === 'string' ? current : await current
      requireToken(token)
      headers.set('authorization', `Bearer ${token}`)
    }
    const redirect = trusted ? 'manual' : 'follow'
    const response = await transport({ method, url, headers, body, redirect }, timer)
    const next = redirectOf(response, url, request, credential.origin)
    if (!next) return response
    response.body?.cancel().catch(() => {})
    // After a redirect to another origin the token is not sent again, not even to its own origin.
    trusted &&= next.origin === credential.origin
    url = next.href
  }
  throw new RedirectError(request.url, url, `The service redirects more than ${maxRedirects} times`)
}

/** The target of a redirect; null if the response is not one. Throws a `RedirectError` for a target that is not followed. */
function redirectOf(response: Response, url: string, request: Request, origin: string): URL | null {
  if (response.type === 'opaqueredirect') {
    throw new RedirectError(
      url,
      null,
      'The service redirects, and browsers hide the target; use the final URL',
    )
  }
  const location = redirectStatuses.has(response.status) ? response.headers.get('location') : null
  if (location === null) return null

  const next = parseUrl(location, url)
  const refuse = (reason: string) =>
    new RedirectError(url, next?.href ?? location, `The service redirects ${reason}`)
  if (!next || !/^https?:$/.test(next.protocol) || next.username || next.password) {
    throw refuse('to a target that is not an http or https URL')
  }
  if (next.origin !== origin && !request.mayLeaveOrigin) {
    throw refuse(`to ${next.origin}; create the client with that URL to send it the token`)
  }
  if (request.method !== 'GET' && response.status < 307) {
    throw refuse(`a ${request.method} with a status (${response.status}) that may turn it into a GET`)
  }
  if (request.body && !request.body.content.blob) throw refuse('an upload whose stream cannot be sent again')
  return next
}
