import type { Fault, FaultCode, ParameterFault } from '../../core/fault.ts'
import { HeaderFault } from '../headers/header-fault.ts'
import { problemKinds } from './problems.ts'

/** RFC 9457, extended by `code` for programs and `errors` for invalid parameters (docs/interface.md P1). */
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

/** The status, headers and body of a problem (docs/interface.md P1, P5). */
export function problemResponse(
  fault: Fault,
  baseUrl: string,
  instance: string,
): { readonly status: number; readonly headers: Readonly<Record<string, string>>; readonly body: Buffer } {
  const problem = problemDetails(fault, baseUrl, instance)
  const { status } = problem
  const body = Buffer.from(JSON.stringify(problem))
  const headers = {
    'content-type': 'application/problem+json',
    'content-length': `${body.byteLength}`,
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
    ...(hasChallenge(fault.code) ? { 'www-authenticate': challenge(fault) } : {}),
    ...(status === 503 || status === 429 ? { 'retry-after': '2' } : {}),
    ...(fault instanceof HeaderFault ? fault.headers : {}),
  }
  return { status, headers, body }
}

/** The `error` of RFC 6750, section 3.1, for problems of tokens; null for a request without a token, which gets none. */
const tokenErrors: Partial<Record<FaultCode, 'invalid_token' | 'insufficient_scope' | null>> = {
  'token-missing': null,
  'token-malformed': 'invalid_token',
  'token-unknown': 'invalid_token',
  'token-expired': 'invalid_token',
  'token-revoked': 'invalid_token',
  'token-refused': 'invalid_token',
  'scope-missing': 'insufficient_scope',
}

/** Whether the problem has a `WWW-Authenticate` header (docs/interface.md A2, A3). */
export const hasChallenge = (code: FaultCode): boolean => tokenErrors[code] !== undefined

function challenge(fault: Fault): string {
  const realm = 'Bearer realm="mediabucket"'
  const error = tokenErrors[fault.code] ?? null
  if (error === null) return realm
  const scope = fault.parameters.find(({ parameter }) => parameter === 'scope')
  return `${realm}, error="${error}", error_description="${problemKinds[fault.code].title}"${scope ? `, scope="${scope.detail}"` : ''}`
}
