import { randomUUID } from 'node:crypto'
import {
  accessSync,
  closeSync,
  constants,
  existsSync,
  fsyncSync,
  lstatSync,
  openSync,
  readdirSync,
  readSync,
  rmSync,
  statfsSync,
  statSync,
} from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { pathToFileURL } from 'node:url'
import { ExplainedError, errorCode } from '../../../../core/faults.ts'
import { CreateDirectoryError, createDirectories, tryCreateDirectories } from '../../../durable-files.ts'
import { isBusy, isCorrupt, isFull, isIoError, resultCode } from '../../../sqlite.ts'
import { movedKey, movedText } from '../../moved-data.ts'
import { integer } from '../../statements.ts'
import { transferKey } from '../../transfer.ts'
import { type BlobsOwner, blobsOwner, readMeta } from '../../upkeep.ts'
import { createRun, one, openConnection, readTimeout, reclaimSpaceToOpen } from './sqlite-database.ts'
import { migrate, requireVersion } from './sqlite-schema.ts'

/**
 * Opens the catalog and migrates it to this program's version; creates the directory, accessible to its owner only, and the catalog if
 * they do not exist. Throws DataDirectoryError and CatalogVersionError, also for a catalog that `mediabucket migrate` has not completed,
 * or whose rows it has moved.
 */
export function openDataDirectory(directory: string, busyTimeout = 0): DatabaseSync {
  requireNoTransferMark(directory)
  const db = openForTransfer(directory, busyTimeout)
  const place = join(directory, 'catalog.db')
  try {
    requireNotMoved(db, place)
    return db
  } catch (error) {
    db.close()
    throw explainOpenError(place, error)
  }
}

/** As openDataDirectory, for `mediabucket migrate`. */
export function openForTransfer(directory: string, busyTimeout = 0): DatabaseSync {
  makeDirectory(directory)
  const path = join(directory, 'catalog.db')
  requireIntactLog(path)
  try {
    reclaimSpaceToOpen(directory)
    const db = openConnection(directory, busyTimeout)
    try {
      requireComplete(db, path)
      migrate(db)
      return db
    } catch (error) {
      db.close()
      throw error
    }
  } catch (error) {
    throw explainOpenError(path, error)
  }
}

/** A file that nobody changes, for SQLite: it is not written to, and gets no files beside it. */
export function unchanging(path: string): URL {
  const url = pathToFileURL(path)
  url.searchParams.set('immutable', '1')
  return url
}

/**
 * Of a catalog that openDataDirectory would open; null if there is none. Changes nothing, and a service may be running. Throws as
 * openDataDirectory does.
 */
export function readSqliteOwner(directory: string): BlobsOwner | null {
  requireNoTransferMark(directory)
  const path = join(directory, 'catalog.db')
  if (!existsSync(path)) return null
  requireIntactLog(path)
  try {
    // Without a log, nobody uses the catalog.
    const place = existsSync(`${path}-wal`) ? path : unchanging(path)
    const db = new DatabaseSync(place, { readOnly: true, returnArrays: true, timeout: readTimeout })
    try {
      requireComplete(db, path)
      if (requireVersion(db) === 0) return null
      requireNotMoved(db, path)
      requireNoTransfer(db, directory)
      return createRun(db)(blobsOwner())
    } finally {
      db.close()
    }
  } catch (error) {
    throw explainOpenError(path, error)
  }
}

/** Throws DataDirectoryError if `mediabucket migrate` has moved the rows. */
function requireNotMoved(db: DatabaseSync, path: string): void {
  const settings = createRun(db)(readMeta(movedKey))
  if (settings !== null) throw new DataDirectoryError(movedText(path, settings))
}

/**
 * The first four bytes of a write-ahead log, in the two byte orders of its checksums; zeros after a power failure before its
 * first sync. See https://sqlite.org/fileformat2.html#walformat.
 */
const logHeaders: ReadonlySet<number> = new Set([0x377f0682, 0x377f0683, 0])

/** SQLite ignores a log with a damaged header, and loses its changes. Throws DataDirectoryError. */
function requireIntactLog(catalog: string): void {
  const path = `${catalog}-wal`
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

/** Throws DataDirectoryError if pages are missing. SQLite notices that only when it reads them, which may be much later. */
function requireComplete(db: DatabaseSync, path: string): void {
  const number = (sql: string) => integer(one(db.prepare(sql)) ?? [], 0)
  const expected = number('PRAGMA page_count') * number('PRAGMA page_size')
  const sizeOf = (file: string) => statSync(file, { throwIfNoEntry: false })?.size ?? 0
  // The log first: a running server may checkpoint and truncate it between the two.
  const logSize = sizeOf(`${db.location()}-wal`)
  const found = logSize + sizeOf(path)
  if (found < expected)
    throw new DataDirectoryError(
      `${path} is damaged: it has ${found} bytes of ${expected}. Restore a backup with mediabucket restore.`,
    )
}

/** File systems whose numbers of files may change without a copy: FUSE, 9p and SMB. */
const unstableTypes: ReadonlySet<number> = new Set([0x65735546, 0x01021997, 0xff534d42, 0xfe534d42])

/** What distinguishes a file from copies of it; null if the file system does not show that. */
export function placeOf(path: string): string | null {
  if (unstableTypes.has(statfsSync(path).type)) return null
  // The number alone may be used again. The time of creation is 0 where the file system does not store it.
  const { ino, birthtimeNs } = statSync(path, { bigint: true })
  return `${ino}/${birthtimeNs}`
}

const { O_CREAT, O_NOFOLLOW, O_WRONLY } = constants

/** Exists until the catalog itself has the mark of the transfer, or, if the catalog is elsewhere, to the end of the transfer. */
const markOf = (directory: string): string => join(directory, 'migrating')

/**
 * Marks a new data directory before anything else is created in it: from then on no service starts on it. A directory with a catalog is
 * left unchanged.
 */
export function markTransfer(directory: string): void {
  makeDirectory(directory)
  if (existsSync(join(directory, 'catalog.db'))) return
  // Never through a link that somebody else has put there.
  const file = openSync(markOf(directory), O_CREAT | O_WRONLY | O_NOFOLLOW, 0o600)
  try {
    fsyncSync(file)
  } finally {
    closeSync(file)
  }
  syncDirectory(directory)
}

/** How many names a message has. */
const named = 3

/**
 * As markTransfer, for a directory that is no data directory yet. `hasCatalog` says whether the catalog is to be in it. Throws DataDirectoryError if it has
 * other files than those of an interrupted transfer.
 */
export function markNewDirectory(directory: string, hasCatalog: boolean): void {
  const isMarked = existsSync(markOf(directory)) || (hasCatalog && existsSync(join(directory, 'catalog.db')))
  if (!isMarked && existsSync(directory)) {
    const names = readdirSync(directory).filter((name) => name !== 'lost+found')
    const more = names.length > named ? ` and ${names.length - named} more` : ''
    if (names.length > 0)
      throw new DataDirectoryError(
        `${directory} has other files (${names.slice(0, named).join(', ')}${more}). Choose a directory that is empty or does not exist.`,
      )
  }
  markTransfer(directory)
}

/** The catalog has the mark now, or the transfer is complete. */
export function unmarkTransfer(directory: string): void {
  if (!existsSync(markOf(directory))) return
  rmSync(markOf(directory))
  syncDirectory(directory)
}

/** Throws DataDirectoryError if a transfer was interrupted before the catalog had its mark. */
function requireNoTransferMark(directory: string): void {
  if (existsSync(markOf(directory))) throw incomplete(directory)
}

/** Throws DataDirectoryError while the catalog has only a part of the rows that are transferred into it. */
export function requireNoTransfer(db: DatabaseSync, directory: string): void {
  if (createRun(db)(readMeta(transferKey)) !== null) throw incomplete(join(directory, 'catalog.db'))
}

const incomplete = (path: string) =>
  new DataDirectoryError(
    `${path} is incomplete, because its migration was interrupted. Run the same mediabucket migrate again.`,
  )

function syncDirectory(directory: string): void {
  const descriptor = openSync(directory, 'r')
  try {
    fsyncSync(descriptor)
  } finally {
    closeSync(descriptor)
  }
}

const remedy = 'Set MEDIABUCKET_DATA to a directory that this user may write to.'

/**
 * Creates the data directory if it is missing, accessible to its owner only. Throws DataDirectoryError, also if this user
 * cannot write to an existing directory.
 */
export function makeDirectory(path: string): void {
  nearestDirectory(path)
  explainCreation(() => createDirectories(resolve(path)))
  requireAccess(path)
}

const { R_OK, W_OK, X_OK } = constants

/**
 * As makeDirectory, but removes what it creates. Where no service has run, it creates a directory: rights do not show what root cannot do,
 * such as create one in /proc.
 */
export function requireDirectory(path: string): void {
  const isMissing = nearestDirectory(path) !== resolve(path)
  if (!isMissing) requireAccess(path)
  if (existsSync(join(path, 'lock.db'))) return
  const tried = isMissing ? resolve(path) : resolve(path, `.check-${randomUUID()}`)
  explainCreation(() => tryCreateDirectories(tried))
}

function explainCreation(create: () => void): void {
  try {
    create()
  } catch (error) {
    if (!(error instanceof CreateDirectoryError)) throw error
    if (!['ENOENT', 'EACCES', 'EPERM', 'EROFS'].includes(error.code ?? '')) throw error.cause
    throw new DataDirectoryError(`${error.path} cannot be created (${error.code}). ${remedy}`)
  }
}

/** The directory, or the one in which it would be created. Throws DataDirectoryError if that is a file. */
function nearestDirectory(path: string): string {
  let existing = resolve(path)
  while (!existsSync(existing)) existing = dirname(existing)
  if (!statSync(existing).isDirectory())
    throw new DataDirectoryError(`${existing} is a file, not a directory. ${remedy}`)
  return existing
}

/** The entries that a start reads and writes, if they exist. */
const entries = [
  '.',
  'catalog.db',
  'catalog.db-wal',
  'catalog.db-shm',
  'lock.db',
  'hold.db',
  'variants.db',
  'variants.db-wal',
  'variants.db-shm',
  'blobs',
  'tmp',
  'uploads',
]

/** Throws DataDirectoryError if this user cannot read and write the data. */
function requireAccess(directory: string): void {
  for (const name of entries) {
    const path = join(directory, name)
    const status = statSync(path, { throwIfNoEntry: false })
    if (!status) continue
    try {
      accessSync(path, R_OK | W_OK | (status.isDirectory() ? X_OK : 0))
    } catch (error) {
      throw new DataDirectoryError(
        errorCode(error) === 'EROFS'
          ? `${path} is on a read-only file system, and the service has to write. Mount it for writing, or set MEDIABUCKET_DATA to another directory.`
          : `${path} cannot be read and written by this user (uid ${process.getuid?.()}; its owner is uid ${status.uid}). Run mediabucket as its owner, or change the owner with chown.`,
      )
    }
  }
}

/** Permission bits of all users except the owner. */
const others = 0o077

/** Returns the names of entries that other users can read, write or enter. The service itself creates none. */
export function findExposedEntries(directory: string): string[] {
  return readdirSync(directory).filter((name) => {
    const status = lstatSync(join(directory, name), { throwIfNoEntry: false })
    if (!status || !(status.isFile() || status.isDirectory()) || name === 'lost+found') return false
    return (status.mode & others) !== 0
  })
}

/** The data directory cannot be used; the message is one line with the path and what to do. */
class DataDirectoryError extends ExplainedError {
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
