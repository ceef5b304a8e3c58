import type { BaseLogger } from 'pino'
import { errorCode, Fault, type FaultCode, TokenFault } from '../core/faults.ts'
import { HeaderFault } from './headers.ts'
import { isTokenRefusal, type RequestLimits } from './limits.ts'
import type { Problem, ValueOf } from './openapi/schemas.ts'
import { problemKinds } from './problem-kinds.ts'
import type { RequestParts } from './route.ts'

/** RFC 9457, extended by `code` for programs and `errors` for invalid parameters (docs/interface.md P1). */
export type ProblemDetails = ValueOf<typeof Problem>

export function problemDetails(fault: Fault, baseUrl: string, instance: string): ProblemDetails {
  const { code, message, members, parameters } = fault
  const { status, title } = problemKinds[code]
  const problem = { type: `${baseUrl}/problems/${code}`, title, status, detail: message, instance, code }
  // Most have no others, and a copy takes longer than the rest.
  if (parameters.length > 0) return { ...problem, ...members, errors: parameters }
  return Object.keys(members).length > 0 ? { ...problem, ...members } : problem
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
  const headers: Record<string, string> = {
    'content-type': 'application/problem+json',
    'content-length': `${body.byteLength}`,
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
  }
  if (hasChallenge(fault.code)) headers['www-authenticate'] = challenge(fault)
  if (status === 503 || status === 429) headers['retry-after'] = '2'
  if (fault instanceof HeaderFault) Object.assign(headers, fault.headers)
  return { status, headers, body }
}

/** Serializes a fault as a complete response that closes the connection, for connections without a request. `more` are further headers. */
export type FaultSerializer = (
  fault: Fault,
  requestId: string,
  more?: Readonly<Record<string, string>>,
) => { readonly status: number; readonly bytes: Buffer }

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

/** The code and the detail of a fault. */
export type CodeAndDetail = readonly [FaultCode, detail: string]

export const incompleteBody: CodeAndDetail = [
  'upload-incomplete',
  'The connection ended before the whole body had arrived.',
]

/** The system has no file descriptor, memory, thread or process left. */
const resourceErrors: ReadonlySet<string> = new Set(['EMFILE', 'ENFILE', 'ENOMEM', 'EAGAIN'])

/** Turns a thrown value into a Fault: `internal`, without details, where it is unexpected. */
function toFault(error: unknown): Fault {
  if (error instanceof Fault) return error
  const code = errorCode(error)
  if (code === 'ECONNRESET') return new Fault(...incompleteBody, { cause: error })
  if (code !== null && resourceErrors.has(code))
    return new Fault('overloaded', 'The service has no resources left for this request.', { cause: error })
  return new Fault('internal', 'The service met an unexpected error and has logged it.', { cause: error })
}

/**
 * A full bucket, a used-up token, a reached reserve of free space, a read-only service, a stop of it and requests that HTTP does not require are no
 * errors, although their status is 5xx. A service that is not ready logs its reasons when they change, and refused connections are logged
 * together (refused-connections.ts).
 */
const expected: ReadonlySet<FaultCode> = new Set([
  ...(['quota-exceeded', 'token-limit-exceeded', 'shutting-down', 'read-only'] as const),
  // The scans report their failures themselves.
  'scanner-unavailable',
  ...(['connections-too-many', 'not-ready'] as const),
  ...(['method-unsupported', 'transfer-coding-unsupported', 'http-version-unsupported'] as const),
])

/** Refusals while other requests use the catalog or the machine: the request succeeds later, without the operator. They have no cause. */
const temporary: ReadonlySet<FaultCode> = new Set(['catalog-busy', 'variants-busy', 'overloaded'])

/** The level at which a fault is logged; null if the line of its request is enough. */
function levelOf({ code, cause }: Fault): 'error' | 'warn' | null {
  if (problemKinds[code].status < 500 || expected.has(code)) return null
  if (cause !== undefined) return 'error'
  if (code === 'storage-full') return null
  return temporary.has(code) ? 'warn' : 'error'
}

/** Counts a fault that refuses a token, or a request before it was counted for its valid token. */
const countRefusal = (
  limits: Pick<RequestLimits, 'countAuthFailure' | 'countToken'>,
  fault: Fault,
  request: RequestParts['request'],
): Fault =>
  fault instanceof TokenFault && !isTokenRefusal(fault)
    ? (limits.countToken(fault.tokenId) ?? fault)
    : limits.countAuthFailure(fault, request)

/** Returns the fault to respond with. Counts it against the rate limits; counts and logs errors of the service. */
export type FaultReporter = (error: unknown, exchange: RequestParts) => Fault

export function createFaultReporter(parts: {
  readonly limits: Pick<RequestLimits, 'countAuthFailure' | 'countToken'>
  /** Counts errors that the storage caused. */
  readonly countStorageError: (error: unknown) => void
  readonly log: Pick<BaseLogger, 'error' | 'warn'>
}): FaultReporter {
  const { limits, countStorageError, log } = parts
  return (error, { request, line, id: requestId }) => {
    const original = toFault(error)
    if (original instanceof TokenFault) line.token = original.tokenId
    const fault = countRefusal(limits, original, request)
    const { authorization } = request.headers
    if (isTokenRefusal(original) && authorization !== undefined) line.refused = authorization
    const level = levelOf(fault)
    if (level !== null) {
      countStorageError(fault)
      log[level]({ requestId, err: fault.cause ?? fault }, fault.message)
    }
    return fault
  }
}
