import type { Config } from '../config/config.ts'
import { ExplainedError } from '../core/explained-error.ts'

/** Exit codes that scripts can distinguish, in addition to 1 for all other failures and 2 for an invalid argument or setting. */
export const exitCodes = {
  accessDenied: 3,
  notFound: 4,
  incomplete: 5,
  interrupted: 130,
  terminated: 143,
} as const

/** Where a command writes. Each argument becomes one line; control characters in it are replaced. */
export interface CommandOutput {
  /** Writes a result to standard output, for scripts. */
  readonly print: (...lines: readonly string[]) => void
  /** Writes a message to standard error, for people. */
  readonly report: (...lines: readonly string[]) => void
}

export interface CommandContext extends CommandOutput {
  readonly config: Config
  readonly warnings: readonly string[]
}

export interface Command {
  readonly help: string
  /** Throws UsageError for invalid arguments, and CommandError. */
  readonly run: (args: readonly string[], context: CommandContext) => Promise<void>
}

/** A command that uses a service over HTTP. */
export interface ClientCommand {
  readonly help: string
  readonly run: (args: readonly string[], output: CommandOutput) => Promise<void>
}

/** What the help says about a command. */
export interface CommandDescription {
  readonly name: string
  readonly summary: string
  readonly help: string
}

/** A command about the commands. */
export interface MetaCommand {
  readonly help: string
  readonly run: (
    args: readonly string[],
    describe: () => Promise<readonly CommandDescription[]>,
  ) => Promise<string>
}

/** The arguments are invalid; the message names valid ones. */
export class UsageError extends ExplainedError {
  override readonly name = 'UsageError'
}

/** The command failed; the message contains the reason and what to do. */
export class CommandError extends ExplainedError {
  override readonly name = 'CommandError'
  readonly exitCode: number

  constructor(message: string, exitCode = 1) {
    super(message)
    this.exitCode = exitCode
  }
}
