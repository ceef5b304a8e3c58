import type { CommandOutput } from '@mediabucket/cli/command'
import type { Config } from '../service/config.ts'

export interface CommandContext extends CommandOutput {
  readonly config: Config
  readonly warnings: readonly string[]
}

/** A command of the service or on its data, which reads the settings of the service. */
export interface Command {
  readonly help: string
  /** Throws UsageError for invalid arguments, and CommandError. */
  readonly run: (args: readonly string[], context: CommandContext) => Promise<void>
}
