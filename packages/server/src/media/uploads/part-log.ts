import type { PartLog } from '../../blobs/partial-uploads.ts'
import type { Catalog } from '../../catalog/catalog.ts'

/** The records of the parts of partial uploads, in the catalog. */
export const partLog = (
  catalog: Pick<Catalog, 'uploadParts' | 'uploadPieces' | 'beginParts' | 'storeParts'>,
): PartLog => ({
  read: catalog.uploadParts,
  pieces: catalog.uploadPieces,
  begin: catalog.beginParts,
  store: catalog.storeParts,
})
