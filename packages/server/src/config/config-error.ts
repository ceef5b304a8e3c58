import { ExplainedError } from '../core/explained-error.ts'

/** Every invalid setting, reported together (docs/interface.md O7). */
export class ConfigError extends ExplainedError {
  override readonly name = 'ConfigError'
  readonly faults: readonly string[]

  constructor(faults: readonly string[]) {
    const [first = ''] = faults
    super(faults.length === 1 ? first : `${faults.length} settings are wrong:\n  ${faults.join('\n  ')}`)
    this.faults = faults
  }
}
