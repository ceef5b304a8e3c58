import { existsSync, mkdirSync, statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'

/** There is no data directory and none can be made; the message says why. */
export class DataDirectoryError extends Error {
  override readonly name = 'DataDirectoryError'
}

/**
 * Makes the directory, and those above it that are missing, for their owner alone. Step by step: mkdir's own
 * `recursive` never ends where the system answers ENOENT below a directory that is there, as in /proc.
 */
export function makeDirectory(path: string): void {
  const missing: string[] = []
  let standing = resolve(path)
  for (; !existsSync(standing); standing = dirname(standing)) missing.unshift(standing)
  if (!statSync(standing).isDirectory())
    throw new DataDirectoryError(`${standing} is a file, not a directory`)
  for (const step of missing) makeStep(step)
}

function makeStep(path: string): void {
  try {
    mkdirSync(path, { mode: 0o700 })
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : null
    if (code === 'ENOENT') throw new DataDirectoryError(`no directory can be made at ${path} (ENOENT)`)
    // Another process may have been faster.
    if (code !== 'EEXIST' || !existsSync(path)) throw error
  }
}
