import type { ProblemError } from '@mediabucket/client'
import { CommandError, UsageError } from '../command.ts'

/** Exit codes that scripts can report apart, beside 1 for every other failure. */
export const exitCodes = { refused: 3, missing: 4 } as const

/**
 * An error of the client as one of ours, whose message says what to do; null for an error that nobody foresaw. Errors
 * are known by their names, so that the client need not be loaded for it. `target` is the URL that was asked, where it
 * may be of another origin than the service at `url`.
 */
export function explain(
  error: unknown,
  url: string,
  target: string | null = null,
): CommandError | UsageError | null {
  if (error instanceof CommandError || error instanceof UsageError) return error
  if (!(error instanceof Error)) return null
  const elsewhere = originElsewhere(target, url)
  if (elsewhere !== null) return explainElsewhere(error, elsewhere)
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
  return explainCall(error)
}

function explainCall(error: Error): CommandError | null {
  return 'syscall' in error ? new CommandError(error.message) : null
}

function originElsewhere(target: string | null, url: string): string | null {
  const origin = target !== null && URL.canParse(target) ? new URL(target).origin : null
  return origin === null || (URL.canParse(url) && new URL(url).origin === origin) ? null : origin
}

/** Of a server that is not the one of the settings, and was sent no token. */
function explainElsewhere(error: Error, origin: string): CommandError | null {
  const aside = 'The URL is not of the service at MEDIABUCKET_URL, so no token was sent.'
  if (isAnswer(error)) {
    const exitCode = { 401: exitCodes.refused, 403: exitCodes.refused, 404: exitCodes.missing }[error.status]
    return new CommandError(
      `${origin} answers: ${error.problem?.detail ?? `${error.message}.`} ${aside}`,
      exitCode,
    )
  }
  switch (error.name) {
    case 'ConnectionError':
      return new CommandError(`no connection to ${origin}${reasonOf(error.cause)}. Is the URL right?`)
    case 'TimeoutError':
    case 'RedirectError':
    case 'ShapeError':
      return new CommandError(`${error.message} (${origin}). Is the URL right?`)
  }
  return explainCall(error)
}

type Answer = Error & Pick<ProblemError, 'status'> & Partial<Pick<ProblemError, 'problem'>>

const isAnswer = (error: Error): error is Answer =>
  (error.name === 'AnswerError' || error.name === 'ProblemError') && 'status' in error

function explainAnswer({ status, problem, message }: Answer, url: string): CommandError {
  const detail = problem?.detail ?? problem?.title ?? message
  if (status === 401)
    return new CommandError(
      `${url} does not take the token: ${detail} Set MEDIABUCKET_TOKEN to a valid token; mediabucket token create --bucket NAME creates one.`,
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
