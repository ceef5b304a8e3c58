import { createHash } from 'node:crypto'
import type { Client, ParameterFault, ProblemError, ServiceClient } from '@mediabucket/client'
import { isLabelKey, isLabelValue, maxLabelValue } from '@mediabucket/client/rules'
import {
  type ClientSettings,
  clientSettings,
  connectionHelp,
  readClientSettings,
  takeConnectionOptions,
} from './client-settings.ts'
import { type ClientCommand, CommandError, type CommandOutput, exitCodes, UsageError } from './command.ts'
import { watchNpm } from './processes.ts'
import { type Output, printableText, standardOutput } from './terminal.ts'

/** The context of a command that uses a service. */
export interface ClientContext {
  readonly client: Client
  /** The same client, which sends each request once. */
  readonly probe: Client
  /** The base URL of the service. */
  readonly url: string
  /** A hash of the token, under which its state is stored; the token itself must not be. */
  readonly tokenHash: string
  /** For results, which scripts read. */
  readonly output: Output
  /** For messages, which people read. */
  readonly report: CommandOutput['report']
  /** Aborted by Ctrl-C, SIGTERM, and the end of the npm or npx that runs the command. */
  readonly interrupted: AbortSignal
  /** Null for an unexpected error. */
  readonly explain: (error: unknown) => ReturnType<typeof explainClientError>
}

/**
 * A command that uses a service. Errors become a message and an exit code. If the reader of standard output closes it early, and
 * nothing else fails, the command ends with exit code 0.
 */
export function clientCommand<Arguments>(command: {
  readonly help: string
  /** Throws UsageError for invalid arguments. */
  readonly read: (args: readonly string[]) => Arguments
  readonly run: (args: Arguments, context: ClientContext) => Promise<void>
  /** The requested URL, if it may be of another server. */
  readonly target?: (args: Arguments) => string | null
}): ClientCommand {
  const { help, read, run, target } = command
  return {
    help: `${help}\n\n${connectionHelp}`,
    async run(args, { report }) {
      const { connection, rest } = takeConnectionOptions(args)
      const parsed = read(rest)
      const settings = readClientSettings(connection)
      await withService(settings, target?.(parsed) ?? null, async (service) => {
        const clients = await connect(settings, report)
        const tokenHash = createHash('sha256').update(settings.token).digest('hex')
        await run(parsed, { ...service, ...clients, url: settings.url, tokenHash, report })
      })
    },
  }
}

/** Runs the work of a command, and turns its errors into a message and an exit code. `target` is as for explainClientError. */
export async function withService(
  settings: ClientSettings,
  target: string | null,
  work: (service: Pick<ClientContext, 'output' | 'interrupted' | 'explain'>) => Promise<void>,
): Promise<void> {
  const explain = (error: unknown) => explainClientError(error, settings, target)
  const interrupt = interruption()
  const output = standardOutput()
  try {
    await work({ output, interrupted: interrupt.signal, explain })
  } catch (error) {
    if (interrupt.signal.aborted) process.exitCode = interrupt.exitCode()
    else if (!isOfClosed(error, output.closed)) throw explain(error) ?? error
  } finally {
    interrupt.end()
  }
}

/** Whether an error says only that the reader has closed standard output. Node.js wraps the reason of an abort. */
const isOfClosed = (error: unknown, { aborted, reason }: AbortSignal): boolean =>
  aborted && (error === reason || (error instanceof Error && error.name === 'AbortError'))

function interruption() {
  const controller = new AbortController()
  let exitCode: number = exitCodes.interrupted
  const stop = (code: number) => {
    exitCode = code
    controller.abort()
  }
  const onInterrupt = () => stop(exitCodes.interrupted)
  const onTerminate = () => stop(exitCodes.terminated)
  // Once: a second signal ends the process at once.
  process.once('SIGINT', onInterrupt)
  process.once('SIGTERM', onTerminate)
  watchNpm(onTerminate)
  return {
    signal: controller.signal,
    exitCode: () => exitCode,
    end() {
      process.removeListener('SIGINT', onInterrupt)
      process.removeListener('SIGTERM', onTerminate)
    },
  }
}

/** Throws UsageError. */
export async function connect(
  settings: ClientSettings,
  report: CommandOutput['report'],
): Promise<Pick<ClientContext, 'client' | 'probe'>> {
  // Loaded here, so that other commands start faster.
  const { createClient } = await import('@mediabucket/client')
  const { url, token } = settings
  return withValidSettings(settings, () => ({
    client: createClient({ url, token, retry: { onRetry: rateLimitReporter(report) } }),
    probe: createClient({ url, token, retry: { attempts: 1 } }),
  }))
}

/** As `connect`, to all buckets of the service, and to that of the token. All calls end when the signal is aborted. */
export async function connectService(
  settings: ClientSettings,
  report: CommandOutput['report'],
  interrupted: AbortSignal,
): Promise<{ readonly service: ServiceClient; readonly client: Client }> {
  const { createClient, createServiceClient } = await import('@mediabucket/client')
  const { url, token } = settings
  const options = {
    ...{ url, token, retry: { onRetry: rateLimitReporter(report) } },
    fetch: (input: string | URL | Request, init: RequestInit = {}) =>
      fetch(input, {
        ...init,
        signal: AbortSignal.any([interrupted, ...(init.signal ? [init.signal] : [])]),
      }),
  }
  return withValidSettings(settings, () => ({
    service: createServiceClient(options),
    client: createClient(options),
  }))
}

/** Throws UsageError. */
function withValidSettings<T>({ url, urlSource, tokenSource }: ClientSettings, create: () => T): T {
  try {
    return create()
  } catch (error) {
    if (!(error instanceof TypeError)) throw error
    if (error.message.startsWith('token')) throw new UsageError(`${tokenSource} is invalid: ${error.message}`)
    // The part before an @ may contain a password.
    const shown = url.includes('@') ? '' : ` (${JSON.stringify(url)})`
    throw new UsageError(
      `${urlSource}${shown} is invalid: ${error.message}. Example: ${clientSettings.MEDIABUCKET_URL.defaultText}`,
    )
  }
}

/** Reports delays that the rate limit of the service causes; concurrent requests that wait at the same time, once. */
function rateLimitReporter(report: CommandOutput['report']): (error: unknown, delay: number) => void {
  let reportedUntil = 0
  return (error, delay) => {
    const now = performance.now()
    if (!(error instanceof Error && 'status' in error && error.status === 429) || now < reportedUntil) return
    reportedUntil = now + delay
    report(`The service limits the rate of requests; retrying in ${Math.ceil(delay / 1000)} s.`)
  }
}

type ServiceNames = Pick<ClientSettings, 'url' | 'urlSource' | 'tokenSource'>

/**
 * Turns an error of the client into a CommandError with the reason and what to do; returns null for an unexpected error. Errors are
 * recognized by their names, so that the client does not have to be loaded. `target` is the requested URL, if it may have
 * another origin than the service.
 */
function explainClientError(
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

export const isResponseError = (error: unknown): error is ResponseError =>
  error instanceof Error &&
  (error.name === 'AnswerError' || error.name === 'ProblemError') &&
  'status' in error &&
  'url' in error

/** What the service reports about a parameter or member that it refuses; null for any other error. */
export function faultIn(error: unknown, name: string): ParameterFault | null {
  const faults = error instanceof Error && isResponseError(error) ? error.problem?.errors : undefined
  return faults?.find(({ parameter }) => parameter === name) ?? null
}

/** What a fault accepts, such as `1 to 8 words`; null if it states no values and no limits. */
export function acceptedBy({ accepted, minimum, maximum, unit }: ParameterFault): string | null {
  if (accepted !== undefined) return `one of ${accepted.join(', ')}`
  if (maximum === undefined) return null
  return [minimum === undefined ? 'up to' : `${minimum} to`, maximum, unit ?? []].flat().join(' ')
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
  if (problem?.code === 'url-uploads-off') return new CommandError(detail)
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

/** The key of a label. Throws UsageError. */
export function readLabelKey(option: string, key: string): string {
  if (isLabelKey(key)) return key
  throw new UsageError(
    `${option} takes a key of 1 to 40 lower-case letters, digits and the characters _ . and -, not "${key}"`,
  )
}

/** The pairs of options --label KEY=VALUE. Throws UsageError. */
export const readLabels = (texts: readonly string[]): (readonly [key: string, value: string])[] =>
  texts.map((text) => {
    const end = text.indexOf('=')
    if (end < 0) throw new UsageError(`--label takes KEY=VALUE, such as album=42, not "${text}"`)
    const [key, value] = [readLabelKey('--label', text.slice(0, end)), text.slice(end + 1)]
    if (isLabelValue(value)) return [key, value]
    throw new UsageError(
      `--label takes values of up to ${maxLabelValue} characters without control characters; that of ${key} is none`,
    )
  })
