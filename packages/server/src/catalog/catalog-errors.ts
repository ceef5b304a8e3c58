import { ExplainedError } from '../core/explained-error.ts'

/** This program cannot open the catalog; the message contains the reason and what to do. */
export class CatalogVersionError extends ExplainedError {
  override readonly name = 'CatalogVersionError'
}

/** The database of the catalog cannot be used; the message contains the reason and what to do. */
export class DatabaseError extends ExplainedError {
  override readonly name = 'DatabaseError'
}

/**
 * Why the data of a development version are refused, and how to move them. `commit` opens them, and its backups are restored
 * (sqlite/copy-backup.ts).
 */
export const developmentText = (place: string, commit: '7ac0c5b8' | '661e7aee'): string =>
  `${place} was written by a development version: make a backup of it with mediabucket of commit ${commit}, and restore that with this version (docs/operations/upgrade.md).`
