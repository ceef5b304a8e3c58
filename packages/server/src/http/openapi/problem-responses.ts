import { STATUS_CODES } from 'node:http'
import { Fault, type FaultCode, type ParameterFault } from '../../core/fault.ts'
import { type Problem, problemDetails } from '../problems/problem-response.ts'
import { problemKinds } from '../problems/problems.ts'
import { exampleBase, type OperationDescription } from './operation-description.ts'
import type { ResponseHeader } from './response-headers.ts'

/** What every request can meet. */
const always: readonly FaultCode[] = ['request-malformed', 'request-timeout', 'headers-too-large', 'internal']

const withToken: readonly FaultCode[] = [
  'authorization-repeated',
  'token-missing',
  'token-malformed',
  'token-unknown',
  'token-expired',
  'token-revoked',
  'catalog-busy',
]

/** The codes that an operation can answer, by status, ascending. */
export function problemsByStatus(
  description: OperationDescription,
): ReadonlyMap<number, readonly FaultCode[]> {
  const { needs, problems, unlimited } = description
  const codes = new Set<FaultCode>([
    ...always,
    ...(unlimited ? [] : (['rate-limited'] as const)),
    ...(needs === 'nothing' ? [] : withToken),
    ...(needs === 'nothing' || needs === 'any token' ? [] : (['scope-missing'] as const)),
    ...problems,
  ])
  const byStatus = Map.groupBy(codes, (code) => problemKinds[code].status)
  return new Map([...byStatus].sort(([a], [b]) => a - b))
}

/** The headers that an answer with this status and a problem has. */
export const problemHeaderNames = (status: number): readonly ResponseHeader[] => [
  'Cache-Control',
  ...(status === 401 || status === 403 ? (['WWW-Authenticate'] as const) : []),
  ...(status === 416 ? (['Content-Range'] as const) : []),
  ...(status === 429 ? (['Retry-After', 'RateLimit', 'RateLimit-Policy'] as const) : []),
  ...(status === 503 ? (['Retry-After'] as const) : []),
]

export const describeProblems = (codes: readonly FaultCode[]): string =>
  codes.map((code) => `\`${code}\`: ${problemKinds[code].title}.`).join('\n\n')

/** What the answer is called among the components: by its one code, or by its status. */
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

/** A problem with this code, as it could be answered. */
export const exampleProblem = (code: FaultCode): Problem =>
  problemDetails(
    new Fault(code, problemKinds[code].cause, { parameters: parameters[code] ?? [] }),
    exampleBase,
    '0b3f8d52-6a41-4c7e-9d10-2f5e8a7c4b19',
  )
