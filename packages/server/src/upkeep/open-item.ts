import type { BlobStore, OpenBlob } from '../blobs/blobs.ts'
import { openMemoryBlob } from '../blobs/memory-blob.ts'
import type { AuditedItem, CatalogAudit } from '../catalog/audit.ts'

/** The bytes of an item, from the catalog or the blob store; null if they are missing. Throws as `BlobStore.open`. */
export async function openItem(
  parts: { readonly audit: Pick<CatalogAudit, 'content'>; readonly blobs: Pick<BlobStore, 'open'> },
  { id, contentId }: Pick<AuditedItem, 'id' | 'contentId'>,
): Promise<OpenBlob | null> {
  if (contentId === null) return parts.blobs.open(id)
  const bytes = await parts.audit.content(contentId)
  return bytes && openMemoryBlob(bytes)
}
