import { isItemId } from '../core/ids.ts'
import { settleAll } from '../core/tasks.ts'
import type { BlobStore } from '../storage/blobs/blobs.ts'
import type { Catalog } from '../storage/catalog/catalog.ts'
import {
  type CatalogInspection,
  type InspectedPart,
  partBatches,
} from '../storage/catalog/checks/inspection.ts'
import { createChunkReader, hashBlob, isUnreadable, type ReadChunks } from './copies.ts'
import type { Findings } from './findings.ts'

/** Parts that are checked in parallel. */
const parallelism = 8

/**
 * Checks the bytes of all parts of unfinished uploads of objects (docs/interface.md MU7). A running server causes no false findings: it stores bytes before their
 * row, and deletes them after it, and a finding is added only if the row still exists after the check.
 */
export async function checkParts(parts: {
  readonly catalog: Pick<Catalog, 'listParts'>
  readonly inspection: Pick<CatalogInspection, 'parts'>
  readonly blobs: Pick<BlobStore, 'open'>
  readonly findings: Findings
  /** Reads and hashes every byte. */
  readonly verifyBytes: boolean
}): Promise<void> {
  const { catalog, inspection, findings } = parts
  const readChunks = createChunkReader()

  async function check(part: InspectedPart): Promise<void> {
    const { uploadId, number, itemId } = part
    const fault = await faultOf(part, parts, readChunks)
    if (fault === null) return
    const [current] = await catalog.listParts(uploadId, number - 1, 1)
    if (current?.number === number && current.itemId === itemId)
      findings.add('object-part-wrong', `${uploadId} ${number}: ${fault}`)
  }

  for await (const batch of partBatches(inspection))
    for (const result of await settleAll(batch, parallelism, check))
      if (result.status === 'rejected') throw result.reason
}

/** What is wrong with the bytes of a part; null for nothing. */
async function faultOf(
  { itemId, size, etag }: InspectedPart,
  { blobs, verifyBytes }: { readonly blobs: Pick<BlobStore, 'open'>; readonly verifyBytes: boolean },
  readChunks: ReadChunks,
): Promise<string | null> {
  // Such an id must not become a path. The check of the rows reports it.
  if (!isItemId(itemId)) return null
  try {
    const blob = await blobs.open(itemId)
    if (blob === null) return 'its bytes are missing'
    if (blob.size !== size || !verifyBytes) {
      await blob.close()
      return blob.size === size ? null : `it has ${blob.size} bytes, not ${size}`
    }
    const md5 = await hashBlob(blob, readChunks, 'md5')
    return md5.toString('hex') === etag ? null : 'its bytes have changed'
  } catch (error) {
    if (isUnreadable(error)) return 'its bytes cannot be read'
    throw error
  }
}
