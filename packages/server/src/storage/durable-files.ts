import {
  closeSync,
  constants,
  existsSync,
  fsyncSync,
  mkdirSync,
  openSync,
  renameSync,
  rmdirSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { open, readFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { errorCode } from '../core/faults.ts'

// For commands, and for a service before it handles requests. Synchronous calls start no threads of libuv's pool.

const { O_CREAT, O_EXCL, O_NOFOLLOW, O_WRONLY } = constants
const creation = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW

/** Syncs a file or a directory. */
export function syncPath(path: string): void {
  const descriptor = openSync(path, 'r')
  try {
    fsyncSync(descriptor)
  } finally {
    closeSync(descriptor)
  }
}

/** Creates a file that must not exist. Never writes through a link, whose target may be any file of this user. */
export const createFile = (path: string) => open(path, creation, 0o600)

/** Replaces the whole file atomically: readers, and a start after a power failure, find the old text or the new one. */
export function replaceFile(path: string, text: string): void {
  // What an interrupted call has left, or a link that somebody else has put there.
  rmSync(`${path}.new`, { force: true })
  const descriptor = openSync(`${path}.new`, creation, 0o600)
  try {
    writeFileSync(descriptor, text)
    fsyncSync(descriptor)
  } finally {
    closeSync(descriptor)
  }
  renameSync(`${path}.new`, path)
  syncPath(dirname(path))
}

/** The parsed file; null if there is none, or if it is not JSON. */
export async function readJson(path: string): Promise<unknown> {
  const text = await readFile(path, 'utf8').catch(() => '')
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}

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
  for (const directory of missingDirectories(path)) {
    create(directory)
    syncDirectory(dirname(directory))
  }
}

/** Checks that createDirectories can create these directories: creates them, and removes those that it has created. */
export function tryCreateDirectories(path: string): void {
  const created: string[] = []
  try {
    for (const directory of missingDirectories(path)) if (create(directory)) created.unshift(directory)
  } finally {
    for (const directory of created) removeUnused(directory)
  }
}

function missingDirectories(path: string): string[] {
  const missing: string[] = []
  for (let at = path; !existsSync(at); at = dirname(at)) missing.unshift(at)
  return missing
}

/** False if another process has created it. A dangling link is not a directory. */
function create(path: string): boolean {
  try {
    mkdirSync(path, { mode: 0o700 })
    return true
  } catch (error) {
    if (errorCode(error) !== 'EEXIST' || !existsSync(path)) throw new CreateDirectoryError(path, error)
    return false
  }
}

function removeUnused(directory: string): void {
  try {
    rmdirSync(directory)
  } catch (error) {
    // A service that was started in the meantime uses it.
    if (errorCode(error) !== 'ENOTEMPTY') throw error
  }
}

function syncDirectory(path: string): void {
  try {
    syncPath(path)
  } catch (error) {
    // This user may be allowed to write to a directory and not to read it.
    if (errorCode(error) !== 'EACCES') throw error
  }
}
