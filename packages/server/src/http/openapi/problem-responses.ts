import { Fault, type FaultCode, type ParameterFault } from '../../core/fault.ts'
import { STATUS_CODES } from '../../core/node-http.ts'
import { hasChallenge, type Problem, problemDetails } from '../problems/problem-response.ts'
import { problemKinds } from '../problems/problems.ts'
import type { ResponseHeader } from './headers.ts'
import { exampleBase, type OperationDescription, readIfPrivate } from './operation-description.ts'

/** Problems of every operation. */
const commonProblems: readonly FaultCode[] = [
  'request-malformed',
  'request-timeout',
  'headers-too-large',
  'internal',
]

/** Problems of every request with a token. */
const tokenProblems: readonly FaultCode[] = [
  'authorization-repeated',
  'token-malformed',
  'token-unknown',
  'token-expired',
  'token-revoked',
  'token-refused',
  'bucket-unknown',
  'issuer-unavailable',
  'catalog-busy',
]

/** The problem codes of an operation by status, in ascending order. */
export function problemsByStatus(
  description: OperationDescription,
): ReadonlyMap<number, readonly FaultCode[]> {
  const { needs, problems, unlimited } = description
  const codes = new Set<FaultCode>([
    ...commonProblems,
    ...(unlimited ? [] : (['rate-limited'] as const)),
    ...(needs === 'nothing' ? [] : tokenProblems),
    ...(needs === 'nothing' || needs === readIfPrivate ? [] : (['token-missing'] as const)),
    ...(needs === 'nothing' || needs === 'any token' ? [] : (['scope-missing'] as const)),
    ...problems,
  ])
  const byStatus = Map.groupBy(codes, (code) => problemKinds[code].status)
  return new Map([...byStatus].sort(([a], [b]) => a - b))
}

/** The headers of the problems with this status and these codes. */
export const problemHeaderNames = (
  status: number,
  codes: readonly FaultCode[],
): readonly ResponseHeader[] => [
  'Cache-Control',
  ...(codes.some(hasChallenge) ? (['WWW-Authenticate'] as const) : []),
  ...(status === 416 ? (['Content-Range'] as const) : []),
  ...(status === 429 ? (['Retry-After', 'RateLimit', 'RateLimit-Policy'] as const) : []),
  ...(status === 503 ? (['Retry-After'] as const) : []),
]

export const describeProblems = (codes: readonly FaultCode[]): string =>
  codes.map((code) => `\`${code}\`: ${problemKinds[code].title}.`).join('\n\n')

/** The name of a response component: from its only code, or from its status. */
export const responseComponentName = (status: number, codes: readonly FaultCode[]): string =>
  (codes.length === 1 ? `${codes[0]}` : (STATUS_CODES[status] ?? `${status}`)).replaceAll(
    /(?:^|[-' ])(\w?)/g,
    (_, letter: string) => letter.toUpperCase(),
  )

const parameters: Partial<Record<FaultCode, readonly ParameterFault[]>> = {
  'page-malformed': [
    { parameter: 'page', detail: `page accepts one decimal integer from 1 to ${Number.MAX_SAFE_INTEGER}.` },
  ],
  'scope-missing': [{ parameter: 'scope', detail: 'media:write' }],
}

/** An example of a problem with this code. */
export const exampleProblem = (code: FaultCode): Problem =>
  problemDetails(
    new Fault(code, problemKinds[code].cause, { parameters: parameters[code] ?? [] }),
    exampleBase,
    '0b3f8d52-6a41-4c7e-9d10-2f5e8a7c4b19',
  )
