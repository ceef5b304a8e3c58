import { ExplainedError } from '../core/explained-error.ts'

/** A directory cannot be used for a backup or a restore. The message gives the reason and the solution. */
export class BackupError extends ExplainedError {
  override readonly name = 'BackupError'
}
