import { existsSync, mkdirSync, statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { DataDirectoryError } from './data-directory-error.ts'
import { requireUsable } from './usable-data.ts'

/**
 * Makes the directory, and those above it that are missing, for their owner alone. Throws DataDirectoryError, also where
 * this user may not write to what is there. Step by step: mkdir's own
 * `recursive` never ends where the system answers ENOENT below a directory that is there, as in /proc.
 */
export function makeDirectory(path: string): void {
  const missing: string[] = []
  let standing = resolve(path)
  for (; !existsSync(standing); standing = dirname(standing)) missing.unshift(standing)
  if (!statSync(standing).isDirectory())
    throw new DataDirectoryError(`${standing} is a file, not a directory. ${elsewhere}`)
  for (const step of missing) makeStep(step)
  requireUsable(path)
}

const elsewhere = 'Set MEDIABUCKET_DATA to a directory that this user may write to.'

function makeStep(path: string): void {
  try {
    mkdirSync(path, { mode: 0o700 })
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : null
    if (code === 'ENOENT' || code === 'EACCES' || code === 'EROFS')
      throw new DataDirectoryError(`no directory can be made at ${path} (${code}). ${elsewhere}`)
    // Another process may have been faster.
    if (code !== 'EEXIST' || !existsSync(path)) throw error
  }
}
