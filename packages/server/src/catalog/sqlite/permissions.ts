import { accessSync, constants, lstatSync, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { errorCode } from '../../core/error-code.ts'
import { DataDirectoryError } from './open-errors.ts'

const { R_OK, W_OK, X_OK } = constants

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
export function requireAccess(directory: string): void {
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
