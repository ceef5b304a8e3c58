import type { Config } from '../config/config.ts'

/** Exit codes that scripts can distinguish, in addition to 1 for all other failures and 2 for an invalid argument or setting. */
export const exitCodes = { accessDenied: 3, notFound: 4, incomplete: 5, interrupted: 130 } as const

export interface CommandContext {
  readonly config: Config
  readonly warnings: readonly string[]
  /** Writes a result to standard output, for scripts. */
  readonly print: (text: string) => void
  /** Writes a message to standard error, for people. */
  readonly report: (text: string) => void
}

export interface Command {
  readonly summary: string
  readonly help: string
  /** Throws UsageError for invalid arguments, and CommandError. */
  readonly run: (args: readonly string[], context: CommandContext) => Promise<void>
}

/** The arguments are invalid; the message names valid ones. */
export class UsageError extends Error {
  override readonly name = 'UsageError'
}

/** The command failed; the message contains the reason and what to do. */
export class CommandError extends Error {
  override readonly name = 'CommandError'
  readonly exitCode: number

  constructor(message: string, exitCode = 1) {
    super(message)
    this.exitCode = exitCode
  }
}
