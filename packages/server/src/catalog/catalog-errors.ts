import { ExplainedError } from '../core/explained-error.ts'

/** This program cannot open the catalog; the message contains the reason and what to do. */
export class CatalogVersionError extends ExplainedError {
  override readonly name = 'CatalogVersionError'
}

/** The database of the catalog cannot be used; the message contains the reason and what to do. */
export class DatabaseError extends ExplainedError {
  override readonly name = 'DatabaseError'
}
