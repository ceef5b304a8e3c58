import { Fault } from '../../core/fault.ts'
import { isBusy, isFull, isShortage } from '../../sqlite/result-codes.ts'

/** Maps an error of SQLite to a Fault; returns any other error unchanged. */
export function asFault(error: unknown): unknown {
  if (isFull(error)) {
    return new Fault('storage-full', 'The catalog has no space left on its disk.', { cause: error })
  }
  if (isShortage(error))
    return new Fault('overloaded', 'The catalog has no memory or file descriptor left.', { cause: error })
  if (isBusy(error)) {
    return new Fault('catalog-busy', 'The catalog is busy with other work; try again.', { cause: error })
  }
  return error
}
