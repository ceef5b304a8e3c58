import { accessSync, closeSync, constants, openSync, readSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { DataDirectoryError } from './data-directory-error.ts'
import { isBusy, isCorrupt, isFull, isIoError, resultCode } from './sqlite-errors.ts'

const { R_OK, W_OK, X_OK } = constants

/** What a start reads and writes, where it exists. */
const entries = [
  '.',
  'catalog.db',
  'catalog.db-wal',
  'catalog.db-shm',
  'lock.db',
  'hold.db',
  'blobs',
  'tmp',
  'uploads',
]

/** Throws DataDirectoryError where this user may not read and write the data. */
export function requireUsable(directory: string): void {
  for (const name of entries) {
    const path = join(directory, name)
    const status = statSync(path, { throwIfNoEntry: false })
    if (!status) continue
    try {
      accessSync(path, R_OK | W_OK | (status.isDirectory() ? X_OK : 0))
    } catch (error) {
      throw new DataDirectoryError(
        codeOf(error) === 'EROFS'
          ? `${path} is on a read-only file system, and the service has to write. Mount it for writing, or set MEDIABUCKET_DATA to another directory.`
          : `${path} cannot be read and written by this user (uid ${process.getuid?.()}; its owner is uid ${status.uid}). Run mediabucket as its owner, or change the owner with chown.`,
      )
    }
  }
}

/** How the write-ahead log begins, in the two byte orders of its checksums; zeros where a power cut came before its first sync. */
const logHeaders: ReadonlySet<number> = new Set([0x377f0682, 0x377f0683, 0])

/** SQLite ignores a log with a damaged header, and with it the last changes. Throws DataDirectoryError. */
export function requireSoundLog(directory: string): void {
  const path = join(directory, 'catalog.db-wal')
  if ((statSync(path, { throwIfNoEntry: false })?.size ?? 0) < 4) return
  const header = Buffer.alloc(4)
  const descriptor = openSync(path, 'r')
  try {
    readSync(descriptor, header, 0, 4, 0)
  } finally {
    closeSync(descriptor)
  }
  if (!logHeaders.has(header.readUInt32BE()))
    throw new DataDirectoryError(
      `${path} is damaged, and it holds the last changes of the catalog. Restore a backup with mediabucket restore, or move this file away to go on without them.`,
    )
}

/** An error of opening a database as one line with its path and the cure; any other error stays as it is. */
export function explainOpening(path: string, error: unknown): unknown {
  if (resultCode(error) === null || isBusy(error) || !(error instanceof Error)) return error
  const say = (text: string) => new DataDirectoryError(`${path} ${text}`, { cause: error })
  const reason = openingCode(path)
  if (reason === 'EMFILE' || reason === 'ENFILE')
    return say(
      `cannot be opened: too many files are open (${reason}). Raise the limit, for example with ulimit -n 65536.`,
    )
  if (isFull(error))
    return say('cannot be written: its disk is full. Free some space on it, then start again.')
  if (isCorrupt(error) || resultCode(error) === 1)
    return say(
      `is damaged (${error.message}). ${path.endsWith('lock.db') ? 'Remove it: it holds no data.' : 'Restore a backup with mediabucket restore.'}`,
    )
  if (isIoError(error))
    return say(`cannot be read or written: its disk reports errors (${error.message}). Check the disk.`)
  return say(`cannot be opened (${reason ?? error.message}). Check its permissions and its disk.`)
}

/** Why the system does not open a file; SQLite does not say. */
function openingCode(path: string): string | null {
  try {
    closeSync(openSync(path, 'r+'))
    return null
  } catch (error) {
    return codeOf(error)
  }
}

const codeOf = (error: unknown): string | null =>
  error instanceof Error && 'code' in error ? String(error.code) : null
