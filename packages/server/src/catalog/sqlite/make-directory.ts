import { existsSync, statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { CreateDirectoryError, createDirectories } from '../../files/create-directories.ts'
import { DataDirectoryError } from './open-errors.ts'
import { requireAccess } from './permissions.ts'

const remedy = 'Set MEDIABUCKET_DATA to a directory that this user may write to.'

/**
 * Creates the data directory if it is missing, accessible to its owner only. Throws DataDirectoryError, also if this user
 * cannot write to an existing directory.
 */
export function makeDirectory(path: string): void {
  let existing = resolve(path)
  while (!existsSync(existing)) existing = dirname(existing)
  if (!statSync(existing).isDirectory())
    throw new DataDirectoryError(`${existing} is a file, not a directory. ${remedy}`)
  try {
    createDirectories(resolve(path))
  } catch (error) {
    if (!(error instanceof CreateDirectoryError)) throw error
    if (!['ENOENT', 'EACCES', 'EROFS'].includes(error.code ?? '')) throw error.cause
    throw new DataDirectoryError(`${error.path} cannot be created (${error.code}). ${remedy}`)
  }
  requireAccess(path)
}
