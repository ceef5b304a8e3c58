import { ExplainedError } from '../../core/explained-error.ts'

/** The start of a worker failed. The message contains the reason, and what to do about it if that is known. */
export class WorkerStartError extends ExplainedError {
  override readonly name = 'WorkerStartError'
}
