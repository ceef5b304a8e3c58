import { closeSync, lstatSync, openSync } from 'node:fs'
import { errorCode } from '../../core/error-code.ts'
import { ExplainedError } from '../../core/explained-error.ts'
import { isBusy, isCorrupt, isFull, isIoError, resultCode } from '../../sqlite/result-codes.ts'

/** The data directory cannot be used; the message is one line with the path and what to do. */
export class DataDirectoryError extends ExplainedError {
  override readonly name = 'DataDirectoryError'
}

/** SQLite would create the target of a link, or change it. For files that hold no data. Throws DataDirectoryError. */
export function refuseLink(path: string): void {
  if (lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink())
    throw new DataDirectoryError(`${path} is a link, and its target would be changed. Remove the link.`)
}

/** Turns an error of opening a database into a DataDirectoryError; any other error is returned unchanged. */
export function explainOpenError(path: string, error: unknown): unknown {
  if (resultCode(error) === null || isBusy(error) || !(error instanceof Error)) return error
  const explained = (text: string) => new DataDirectoryError(`${path} ${text}`, { cause: error })
  const reason = systemErrorOf(path)
  if (reason === 'EMFILE' || reason === 'ENFILE')
    return explained(
      `cannot be opened: too many files are open (${reason}). Raise the limit, for example with ulimit -n 65536.`,
    )
  if (isFull(error))
    return explained('cannot be written: its disk is full. Free some space on it, then start again.')
  if (isCorrupt(error) || resultCode(error) === 1)
    return explained(
      `is damaged (${error.message}). ${path.endsWith('lock.db') ? 'Remove it: it holds no data.' : 'Restore a backup with mediabucket restore.'}`,
    )
  if (isIoError(error))
    return explained(`cannot be read or written: its disk reports errors (${error.message}). Check the disk.`)
  return explained(`cannot be opened (${reason ?? error.message}). Check its permissions and its disk.`)
}

/** Opens the file to find the system's error, which SQLite does not report; null if it opens. */
function systemErrorOf(path: string): string | null {
  try {
    closeSync(openSync(path, 'r+'))
    return null
  } catch (error) {
    return errorCode(error)
  }
}
