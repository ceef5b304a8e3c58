import { AnswerError, ConnectionError, ProblemError, TimeoutError } from '@mediabucket/client'
import { strings } from '../strings.ts'

/** Whether nobody answered, or only somebody in front of the service: worth waiting for. */
export const isUnreachable = (error: unknown): boolean =>
  error instanceof ConnectionError ||
  error instanceof TimeoutError ||
  (error instanceof AnswerError && [502, 503, 504].includes(error.status))

export const isUnauthorized = (error: unknown): boolean =>
  error instanceof AnswerError && error.status === 401

export const isNotFound = (error: unknown): boolean => error instanceof AnswerError && error.status === 404

/** What a person is told of an error: the service's own words where it has some. */
export function errorMessage(error: unknown): string {
  if (isUnreachable(error)) return strings.faults.connection
  if (error instanceof ProblemError)
    return error.problem.detail ?? error.problem.title ?? strings.faults.unexpected
  return strings.faults.unexpected
}
