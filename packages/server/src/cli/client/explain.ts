import type { ProblemError } from '@mediabucket/client'
import { CommandError, UsageError } from '../command.ts'

/** Exit codes that scripts can tell apart, beside 1 for every other failure. */
export const exitCodes = { refused: 3, missing: 4 } as const

/**
 * An error of the client as one of ours, whose message says what to do; null for an error that nobody foresaw. Errors
 * are known by their names, so that the client need not be loaded for it.
 */
export function explain(error: unknown, url: string): CommandError | UsageError | null {
  if (error instanceof CommandError || error instanceof UsageError) return error
  if (!(error instanceof Error)) return null
  if (isAnswer(error)) return explainAnswer(error, url)
  switch (error.name) {
    case 'ConnectionError':
      return new CommandError(
        `no connection to ${url}${reasonOf(error.cause)}. Is the service running, and is MEDIABUCKET_URL right?`,
      )
    case 'TimeoutError':
      return new CommandError(`${error.message} (${url}). Try again, or look at its log.`)
    case 'RedirectError':
      return new CommandError(`${error.message}. Set MEDIABUCKET_URL to where the service really is.`)
    case 'ShapeError':
      return new CommandError(
        `what answers at ${url} is no Mediabucket. ${error.message}. Is MEDIABUCKET_URL right?`,
      )
  }
  const call = 'syscall' in error ? error.message : null
  return call === null ? null : new CommandError(call)
}

type Answer = Error & Pick<ProblemError, 'status'> & Partial<Pick<ProblemError, 'problem'>>

const isAnswer = (error: Error): error is Answer =>
  (error.name === 'AnswerError' || error.name === 'ProblemError') && 'status' in error

function explainAnswer({ status, problem, message }: Answer, url: string): CommandError {
  const detail = problem?.detail ?? problem?.title ?? message
  if (status === 401)
    return new CommandError(
      `${url} does not take the token: ${detail} Set MEDIABUCKET_TOKEN to one that is good; mediabucket token create makes one.`,
      exitCodes.refused,
    )
  if (status === 403)
    return new CommandError(
      `the token may not do this: ${detail} mediabucket whoami tells what it may.`,
      exitCodes.refused,
    )
  if (status === 404)
    return new CommandError(problem ? detail : `${message}. Is MEDIABUCKET_URL right?`, exitCodes.missing)
  return new CommandError(detail)
}

/** What the system says of a failed connection, such as ECONNREFUSED. */
function reasonOf(cause: unknown): string {
  for (let at: unknown = cause; at instanceof Error; at = at.cause) {
    if ('code' in at && typeof at.code === 'string') return ` (${at.code})`
  }
  return ''
}
