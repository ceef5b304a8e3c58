/** This program cannot open the catalog; the message contains the reason and what to do. */
export class CatalogVersionError extends Error {
  override readonly name = 'CatalogVersionError'
}

/** The database of the catalog cannot be used; the message contains the reason and what to do. */
export class DatabaseError extends Error {
  override readonly name = 'DatabaseError'
}
