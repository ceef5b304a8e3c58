import type { Fault, FaultCode, ParameterFault } from '../../core/fault.ts'
import { RateLimitFault } from '../limits/rate-limit-fault.ts'
import { problemKinds } from './problems.ts'

/** RFC 9457, with `code` for programs and `errors` for faulty parameters (docs/interface.md P1). */
export interface Problem {
  readonly type: string
  readonly title: string
  readonly status: number
  readonly detail: string
  readonly instance: string
  readonly code: FaultCode
  readonly errors?: readonly ParameterFault[]
}

export function problemDetails(fault: Fault, baseUrl: string, instance: string): Problem {
  const { status, title } = problemKinds[fault.code]
  return {
    type: `${baseUrl}/problems/${fault.code}`,
    title,
    status,
    detail: fault.message,
    instance,
    code: fault.code,
    ...(fault.parameters.length > 0 ? { errors: fault.parameters } : {}),
  }
}

/** A problem as it stands on the wire (docs/interface.md P1, P5), whoever writes it there. */
export function problemResponse(
  fault: Fault,
  baseUrl: string,
  instance: string,
): { readonly status: number; readonly headers: Readonly<Record<string, string>>; readonly body: Buffer } {
  const problem = problemDetails(fault, baseUrl, instance)
  const { status } = problem
  // As bytes: Fastify adds a charset to text, and RFC 9457 knows none.
  const body = Buffer.from(JSON.stringify(problem))
  const headers = {
    'content-type': 'application/problem+json',
    'content-length': `${body.byteLength}`,
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
    ...(status === 401 || status === 403 ? { 'www-authenticate': challenge(fault) } : {}),
    ...(status === 503 ? { 'retry-after': '2' } : {}),
    ...(fault instanceof RateLimitFault ? fault.headers : {}),
  }
  return { status, headers, body }
}

/** RFC 6750, section 3: no error code when no token was sent. */
function challenge(fault: Fault): string {
  const realm = 'Bearer realm="mediabucket"'
  if (fault.code === 'token-missing') return realm
  const error = fault.code === 'scope-missing' ? 'insufficient_scope' : 'invalid_token'
  const scope = fault.parameters.find(({ parameter }) => parameter === 'scope')
  return `${realm}, error="${error}", error_description="${problemKinds[fault.code].title}"${scope ? `, scope="${scope.detail}"` : ''}`
}
