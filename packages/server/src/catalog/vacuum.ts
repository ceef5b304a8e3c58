/** Returns the free space of the catalog to the file system. */
export interface CatalogVacuum {
  /** Bytes of the catalog, and how many of them are free. */
  space(): { readonly size: number; readonly free: number }
  /** Releases some free space in a short transaction. A server may be running. */
  releaseSome(): void
  /** Truncates the files of the catalog, as far as no other process is reading them. */
  finish(): void
  close(): void
}
