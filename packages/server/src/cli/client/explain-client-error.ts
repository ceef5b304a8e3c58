import type { ProblemError } from '@mediabucket/client'
import { CommandError, exitCodes, UsageError } from '../command.ts'
import type { ClientSettings } from './client-settings.ts'
import { printableText } from './terminal-text.ts'

type ServiceNames = Pick<ClientSettings, 'url' | 'urlSource' | 'tokenSource'>

/**
 * Turns an error of the client into a CommandError with the reason and what to do; returns null for an unexpected error. Errors are
 * recognized by their names, so that the client does not have to be loaded. `target` is the requested URL, if it may have
 * another origin than the service.
 */
export function explainClientError(
  error: unknown,
  service: ServiceNames,
  target: string | null = null,
): CommandError | UsageError | null {
  if (error instanceof CommandError || error instanceof UsageError) return error
  const explained = error instanceof Error ? explainForeign(error, service, target) : null
  // On one line, so that texts of a service cannot look like lines of the command.
  return explained && new CommandError(printableText(explained.message), explained.exitCode)
}

function explainForeign(error: Error, service: ServiceNames, target: string | null): CommandError | null {
  const { url, urlSource } = service
  // The service itself may refuse a link to what another server has.
  const isOwn = isResponseError(error) && originElsewhere(error.url, url) === null
  const elsewhere = isOwn ? null : originElsewhere(target, url)
  if (elsewhere !== null) return explainElsewhere(error, elsewhere, urlSource)
  if (isResponseError(error)) return explainResponse(error, service)
  switch (error.name) {
    case 'ConnectionError':
      return new CommandError(
        `no connection to ${url}${reasonOf(error.cause)}. ${certificateRemedy(error.cause) ?? `Is the service running? Check ${urlSource}.`}`,
      )
    case 'TimeoutError':
      return new CommandError(`${error.message} (${url}). Try again, or check the log of the service.`)
    case 'RedirectError':
      return new CommandError(`${error.message}. Set ${urlSource} to the URL of the service.`)
    case 'ShapeError':
      return new CommandError(
        `the server at ${url} is not a Mediabucket service. ${error.message}. Check ${urlSource}.`,
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

/** An error of another server than the service. */
function explainElsewhere(error: Error, origin: string, urlSource: string): CommandError | null {
  const aside = `This is not the service at ${urlSource}, so no token was sent.`
  if (isResponseError(error)) {
    const exitCode = { 401: exitCodes.accessDenied, 403: exitCodes.accessDenied, 404: exitCodes.notFound }[
      error.status
    ]
    return new CommandError(
      `${origin} responded: ${error.problem?.detail ?? `${error.message}.`} ${aside}`,
      exitCode,
    )
  }
  switch (error.name) {
    case 'ConnectionError':
      return new CommandError(
        `no connection to ${origin}${reasonOf(error.cause)}. ${certificateRemedy(error.cause) ?? 'Check the URL.'}`,
      )
    case 'TimeoutError':
    case 'RedirectError':
    case 'ShapeError':
      return new CommandError(`${error.message} (${origin}). Check the URL.`)
  }
  return explainCall(error)
}

type ResponseError = Error & Pick<ProblemError, 'status' | 'url'> & Partial<Pick<ProblemError, 'problem'>>

const isResponseError = (error: Error): error is ResponseError =>
  (error.name === 'AnswerError' || error.name === 'ProblemError') && 'status' in error && 'url' in error

/** What the service says about a parameter or member that it refuses; null for any other error. */
export function faultIn(error: unknown, name: string): string | null {
  const faults = error instanceof Error && isResponseError(error) ? error.problem?.errors : undefined
  return faults?.find(({ parameter }) => parameter === name)?.detail ?? null
}

function explainResponse(
  { status, problem, message }: ResponseError,
  { url, urlSource, tokenSource }: ServiceNames,
): CommandError {
  const detail = problem?.detail ?? problem?.title ?? message
  if (status === 401)
    return new CommandError(
      `${url} rejects the token: ${detail} Set ${tokenSource} to a valid token; mediabucket token create --bucket NAME creates one.`,
      exitCodes.accessDenied,
    )
  if (problem?.code === 'signature-invalid' || problem?.code === 'link-expired')
    return new CommandError(detail, exitCodes.accessDenied)
  if (status === 403)
    return new CommandError(
      `the token lacks a scope: ${detail} mediabucket whoami shows its scopes.`,
      exitCodes.accessDenied,
    )
  if (status === 404)
    return new CommandError(
      problem && problem.code !== 'route-unknown'
        ? `${detail}${problem.code === 'media-unknown' ? ' See: mediabucket ls' : ''}`
        : `${url} responded: ${problem ? detail : `${message}.`} Check ${urlSource}.`,
      exitCodes.notFound,
    )
  if (problem?.code === 'quota-exceeded')
    return new CommandError(
      `${detail} Delete items with mediabucket rm, or raise the quota where the service runs: mediabucket bucket set NAME --max-items N --max-bytes SIZE`,
    )
  if (problem?.code === 'json-malformed') {
    // The detail contains the first one.
    const others = problem.errors?.slice(1).map((error) => ` ${error.parameter}: ${error.detail}`) ?? []
    return new CommandError(detail + others.join(''))
  }
  return new CommandError(detail)
}

/** The system's code of a failed connection, such as ` (ECONNREFUSED)`. */
function reasonOf(cause: unknown): string {
  const code = codeOf(cause)
  return code === null ? '' : ` (${code})`
}

function codeOf(cause: unknown): string | null {
  for (let at: unknown = cause; at instanceof Error; at = at.cause) {
    if ('code' in at && typeof at.code === 'string') return at.code
  }
  return null
}

const trust =
  'If it is yours, set NODE_EXTRA_CA_CERTS to the file of the certificate, or of its authority, in PEM format: NODE_EXTRA_CA_CERTS=/path/to/certificate.pem mediabucket …'

/** What to do about a certificate that is not accepted; null for any other failure of a connection. */
function certificateRemedy(cause: unknown): string | null {
  switch (codeOf(cause)) {
    case 'DEPTH_ZERO_SELF_SIGNED_CERT':
      return `The certificate of the server is self-signed. ${trust}`
    case 'SELF_SIGNED_CERT_IN_CHAIN':
    case 'UNABLE_TO_VERIFY_LEAF_SIGNATURE':
    case 'UNABLE_TO_GET_ISSUER_CERT':
    case 'UNABLE_TO_GET_ISSUER_CERT_LOCALLY':
      return `The certificate of the server is signed by an unknown authority. ${trust}`
    case 'CERT_HAS_EXPIRED':
      return 'The certificate of the server has expired. Renew it where the service runs, or check the clock of this machine.'
    case 'ERR_TLS_CERT_ALTNAME_INVALID':
      return 'The certificate of the server is for another host name. Use a URL with its name.'
    case 'ERR_SSL_WRONG_VERSION_NUMBER':
    case 'ERR_SSL_PACKET_LENGTH_TOO_LONG':
      return 'The server does not use TLS at this port. Does its URL begin with http:// ?'
  }
  return null
}

/** True if every other file would fail for the same reason: the token, or the connection. */
export function affectsAllFiles(error: unknown, explained: Error | null): boolean {
  if (isRefusal(explained)) return true
  return (
    error instanceof Error &&
    ['ConnectionError', 'TimeoutError', 'RedirectError', 'ShapeError'].includes(error.name)
  )
}

export const isRefusal = (explained: Error | null): boolean =>
  explained instanceof CommandError && explained.exitCode === exitCodes.accessDenied
