import { existsSync, mkdirSync, statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { codeOf, DataDirectoryError } from './open-errors.ts'
import { requireAccess } from './permissions.ts'

/**
 * Creates the directory and its missing parents, accessible to their owner only. Throws DataDirectoryError, also if this
 * user cannot write to an existing directory. Creates one level at a time: mkdir with `recursive` never returns where
 * the system reports ENOENT inside an existing directory, as in /proc.
 */
export function makeDirectory(path: string): void {
  const missing: string[] = []
  let existing = resolve(path)
  for (; !existsSync(existing); existing = dirname(existing)) missing.unshift(existing)
  if (!statSync(existing).isDirectory())
    throw new DataDirectoryError(`${existing} is a file, not a directory. ${remedy}`)
  for (const directory of missing) makeOne(directory)
  requireAccess(path)
}

const remedy = 'Set MEDIABUCKET_DATA to a directory that this user may write to.'

function makeOne(path: string): void {
  try {
    mkdirSync(path, { mode: 0o700 })
  } catch (error) {
    const code = codeOf(error)
    if (code === 'ENOENT' || code === 'EACCES' || code === 'EROFS')
      throw new DataDirectoryError(`${path} cannot be created (${code}). ${remedy}`)
    // Another process may have created it first.
    if (code !== 'EEXIST' || !existsSync(path)) throw error
  }
}
