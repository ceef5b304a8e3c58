import type { Config } from '../config/config.ts'

/** What a command is given: the settings, and where it writes. */
export interface CommandContext {
  readonly config: Config
  readonly warnings: readonly string[]
  /** For results: what a script reads. */
  readonly print: (text: string) => void
  /** For people: progress, hints. */
  readonly report: (text: string) => void
}

export interface Command {
  readonly summary: string
  readonly help: string
  /** Resolves when the command is done; throws UsageError for arguments that make no sense. */
  readonly run: (args: readonly string[], context: CommandContext) => Promise<void>
}

/** The arguments make no sense; the message says what would. */
export class UsageError extends Error {
  override readonly name = 'UsageError'
}

/** The command could not do what was asked, for a reason that its message tells whole. */
export class CommandError extends Error {
  override readonly name = 'CommandError'
  readonly exitCode: number

  constructor(message: string, exitCode = 1) {
    super(message)
    this.exitCode = exitCode
  }
}
