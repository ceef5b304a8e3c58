import { closeSync, constants, existsSync, fsyncSync, openSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import type { DatabaseSync } from 'node:sqlite'
import { transferKey } from '../transfer.ts'
import { readMeta } from '../upkeep.ts'
import { makeDirectory } from './make-directory.ts'
import { DataDirectoryError } from './open-errors.ts'
import { createRun } from './statements.ts'

const { O_CREAT, O_NOFOLLOW, O_WRONLY } = constants

/** Exists until the catalog itself has the mark of the transfer. */
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

/** The catalog has the mark now. */
export function unmarkTransfer(directory: string): void {
  if (!existsSync(markOf(directory))) return
  rmSync(markOf(directory))
  syncDirectory(directory)
}

/** Throws DataDirectoryError if a transfer was interrupted before the catalog had its mark. */
export function requireNoTransferMark(directory: string): void {
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
