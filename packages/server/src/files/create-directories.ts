import { closeSync, existsSync, fsyncSync, mkdirSync, openSync } from 'node:fs'
import { dirname } from 'node:path'
import { errorCode } from '../core/error-code.ts'

/** A directory cannot be created. It has the members of a system error; `path` is the first directory that failed. */
export class CreateDirectoryError extends Error {
  override readonly name = 'CreateDirectoryError'
  readonly path: string
  readonly code: string | null
  readonly syscall = 'mkdir'

  constructor(path: string, cause: unknown) {
    const code = errorCode(cause)
    super(`${path} cannot be created (${code})`, { cause })
    this.path = path
    this.code = code
  }
}

/**
 * Creates a directory and its missing parents, accessible to their owner only, and syncs each changed parent. Throws
 * CreateDirectoryError. Not `recursive`: that mkdir never returns where the system reports ENOENT below an existing
 * directory, as in /proc.
 */
export function createDirectories(path: string): void {
  const missing: string[] = []
  for (let at = path; !existsSync(at); at = dirname(at)) missing.unshift(at)
  for (const directory of missing) {
    create(directory)
    syncDirectory(dirname(directory))
  }
}

function create(path: string): void {
  try {
    mkdirSync(path, { mode: 0o700 })
  } catch (error) {
    // Another process may have created it. A dangling link is not a directory.
    if (errorCode(error) !== 'EEXIST' || !existsSync(path)) throw new CreateDirectoryError(path, error)
  }
}

function syncDirectory(path: string): void {
  let descriptor: number
  try {
    descriptor = openSync(path, 'r')
  } catch (error) {
    // This user may be allowed to write to a directory and not to read it.
    if (errorCode(error) === 'EACCES') return
    throw error
  }
  try {
    fsyncSync(descriptor)
  } finally {
    closeSync(descriptor)
  }
}
