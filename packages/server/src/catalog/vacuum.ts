/** Returns the free space of the catalog to the file system. */
export interface CatalogVacuum {
  /** Bytes of the catalog, and how many of them are free. */
  space(): { readonly size: number; readonly free: number }
  /** False if the catalog was created by a version whose catalogs must be rewritten. */
  readonly canReleaseInSteps: boolean
  /** Releases some free space in a short transaction. A server may be running. */
  releaseSome(): void
  /** Truncates the files of the catalog, as far as no other process is reading them. */
  finish(): void
  /**
   * Writes the whole catalog again, as a new one. No other process may use it. Needs free space of twice the size of its rows.
   * After a crash, the catalog is the old one or the new one.
   */
  rewrite(): void
  close(): void
}
