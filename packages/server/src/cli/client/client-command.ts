import { createHash } from 'node:crypto'
import type { Client } from '@mediabucket/client'
import { type Command, type CommandContext, UsageError } from '../command.ts'
import { clientSettings, readClientSettings } from './client-settings.ts'
import { explain } from './explain-client-error.ts'
import { type Output, standardOutput } from './output.ts'

/** What a command that talks to a service is given. */
export interface ClientContext {
  readonly client: Client
  /** A hash of the token: what belongs to it can be kept under this name, the token itself cannot. */
  readonly holder: string
  /** For results: what a script reads. */
  readonly output: Output
  /** For people: what was done, hints. */
  readonly report: CommandContext['report']
  /** Aborted by Ctrl-C. */
  readonly interrupted: AbortSignal
  /** What to report of an error of the client; null for one that nobody foresaw. */
  readonly explain: (error: unknown) => ReturnType<typeof explain>
}

/** The exit code after Ctrl-C, as shells have it: 128 and the signal's number. */
const exitInterrupted = 130

/**
 * A command that talks to a service, from its arguments on. What is thrown becomes a message that names what to do,
 * and an exit code; a reader that leaves early ends it quietly, with 0.
 */
export function clientCommand<Asked>(command: {
  readonly summary: string
  readonly help: string
  /** Throws UsageError for arguments that make no sense. */
  readonly read: (args: readonly string[]) => Asked
  readonly run: (asked: Asked, context: ClientContext) => Promise<void>
  /** The URL that is asked, where that is not the service's own. */
  readonly target?: (asked: Asked) => string | null
}): Command {
  const { summary, help, read, run, target } = command
  return {
    summary,
    help,
    async run(args, { report }) {
      const asked = read(args)
      const settings = readClientSettings()
      const told = (error: unknown) => explain(error, settings.url, target?.(asked) ?? null)
      const interrupt = new AbortController()
      const stop = () => interrupt.abort()
      // Once: a second Ctrl-C ends the process on the spot.
      process.once('SIGINT', stop)
      const output = standardOutput()
      try {
        const client = await connect(settings)
        const context = {
          client,
          holder: createHash('sha256').update(settings.token).digest('hex'),
          output,
          report,
          interrupted: interrupt.signal,
          explain: told,
        }
        await run(asked, context)
      } catch (error) {
        if (interrupt.signal.aborted) process.exitCode = exitInterrupted
        else if (!output.closed.aborted) throw told(error) ?? error
      } finally {
        process.removeListener('SIGINT', stop)
      }
    },
  }
}

async function connect({ url, token }: { url: string; token: string }): Promise<Client> {
  if (token === '')
    throw new UsageError(
      'MEDIABUCKET_TOKEN is not set. Make a token where the service runs: mediabucket token create --bucket NAME',
    )
  // Loaded here, so that the commands that talk to no service need not wait for it.
  const { createClient } = await import('@mediabucket/client')
  try {
    return createClient({ url, token })
  } catch (error) {
    if (!(error instanceof TypeError)) throw error
    if (error.message.startsWith('token'))
      throw new UsageError(`MEDIABUCKET_TOKEN is not usable: ${error.message}`)
    // What stands before an @ may be a password.
    const shown = url.includes('@') ? '' : ` (${JSON.stringify(url)})`
    throw new UsageError(
      `MEDIABUCKET_URL${shown} is not usable: ${error.message}; a good one is ${clientSettings.MEDIABUCKET_URL.defaultText}`,
    )
  }
}
