import { AnswerError, ConnectionError, ProblemError, TimeoutError } from '@mediabucket/client'
import { strings } from '../strings.ts'

/** Whether the server did not respond, or only a proxy in front of it did: a retry may succeed. */
export const isUnreachable = (error: unknown): boolean =>
  error instanceof ConnectionError ||
  error instanceof TimeoutError ||
  (error instanceof AnswerError && [502, 503, 504].includes(error.status))

export const isUnauthorized = (error: unknown): boolean =>
  error instanceof AnswerError && error.status === 401

export const isNotFound = (error: unknown): boolean => error instanceof AnswerError && error.status === 404

export const isPreconditionFailed = (error: unknown): boolean =>
  error instanceof AnswerError && error.status === 412

/** The message to show for an error: the server's own text if it sent a problem (RFC 9457). */
export function errorMessage(error: unknown): string {
  if (isUnreachable(error)) return strings.errors.unreachable
  if (error instanceof ProblemError)
    return error.problem.detail ?? error.problem.title ?? strings.errors.unexpected
  return strings.errors.unexpected
}
