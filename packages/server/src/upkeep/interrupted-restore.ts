import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { ExplainedError } from '../core/faults.ts'

/** The path of the record of a restore in progress. */
export const restoreRecord = (data: string): string => join(data, 'restoring.json')

/** Throws BackupError if a restore was interrupted: a service would start with an empty catalog. */
export function requireNoRestore(data: string): void {
  if (existsSync(restoreRecord(data)) && !existsSync(join(data, 'catalog.db')))
    throw new BackupError(
      `A restore into ${data} was interrupted. Complete it with the same command, mediabucket restore DIR, or empty the directory.`,
    )
}

/** A directory cannot be used for a backup or a restore. The message gives the reason and the solution. */
export class BackupError extends ExplainedError {
  override readonly name = 'BackupError'
}
