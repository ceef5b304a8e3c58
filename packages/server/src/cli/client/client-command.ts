import { createHash } from 'node:crypto'
import type { Client } from '@mediabucket/client'
import { type ClientCommand, type CommandOutput, exitCodes, UsageError } from '../command.ts'
import { watchNpm } from '../processes.ts'
import {
  type ClientSettings,
  clientSettings,
  connectionHelp,
  readClientSettings,
  takeConnectionOptions,
} from './client-settings.ts'
import { explainClientError } from './explain-client-error.ts'
import { type Output, standardOutput } from './output.ts'

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
 * A command that uses a service. Errors become a message and an exit code. If the reader of standard output closes it early, the
 * command ends with exit code 0.
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
    else if (!output.closed.aborted) throw explain(error) ?? error
  } finally {
    interrupt.end()
  }
}

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
  { url, urlSource, token, tokenSource }: ClientSettings,
  report: CommandOutput['report'],
): Promise<Pick<ClientContext, 'client' | 'probe'>> {
  // Loaded here, so that other commands start faster.
  const { createClient } = await import('@mediabucket/client')
  try {
    return {
      client: createClient({ url, token, retry: { onRetry: rateLimitReporter(report) } }),
      probe: createClient({ url, token, retry: { attempts: 1 } }),
    }
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
