import type { BlobStore, OpenBlob } from '../blobs/blobs.ts'
import type { ReceivedBlob } from '../blobs/received-blob.ts'
import { type AuditedItem, type CatalogAudit, itemBatches } from '../catalog/audit.ts'
import { Fault } from '../core/fault.ts'
import { type ItemId, isItemId } from '../core/media-id.ts'
import { settleAll } from '../core/settle-all.ts'
import type { CopyFault } from './copy-faults.ts'
import type { FaultyItem } from './faulty-items.ts'
import { hashBlob } from './hashes.ts'
import { openItem } from './open-item.ts'

export interface CopyResult {
  readonly items: number
  /** Items whose bytes were copied, and the number of these bytes. */
  readonly copied: number
  readonly bytes: number
  /** Items whose bytes were in the target already, with the correct size. */
  readonly present: number
  /** Items whose bytes are in the catalog, which is copied as a whole. */
  readonly inCatalog: number
  /** Items without bytes in the target. */
  readonly faulty: readonly FaultyItem[]
}

/** Items that are copied in parallel. */
const parallelism = 8

/** A failed read concerns one item; a failed write concerns the whole target. */
class UnreadableSource extends Error {
  override readonly name = 'UnreadableSource'
}

/**
 * Copies the bytes of every item from one store to another, unless the catalog has them, and verifies their hashes; durable
 * when it resolves. Reports items whose bytes cannot be copied and copies the others. Rejects if the target cannot be written.
 */
export async function copyBlobs(parts: {
  readonly audit: Pick<CatalogAudit, 'items' | 'content'>
  readonly from: Pick<BlobStore, 'open'>
  readonly to: BlobStore
  readonly onItem: (item: AuditedItem) => void
}): Promise<CopyResult> {
  const { audit, from, to, onItem } = parts
  const faulty: FaultyItem[] = []
  let [items, copied, bytes, present, inCatalog] = [0, 0, 0, 0, 0]

  async function copy(item: AuditedItem): Promise<CopyFault | null> {
    const { id, size } = item
    if (item.contentId !== null) return verifyContent(item)
    const existing = await open(to, id)
    if (existing === 'foreign' || existing === 'unreadable') return 'blocked'
    await existing?.close()
    if (existing?.size === size) {
      present += 1
      return null
    }
    const blob = await open(from, id)
    if (blob === null) return 'missing'
    if (blob === 'foreign' || blob === 'unreadable') return blob
    if (blob.size !== size) {
      await blob.close()
      return 'changed'
    }
    const received = await receive(to, id, blob)
    if (received === null) return 'unreadable'
    if (Buffer.compare(received.sha256, item.sha256) !== 0) {
      await to.discard([received])
      return 'changed'
    }
    // Of another size, so it is not a copy of this item.
    if (existing !== null) await to.remove(id)
    await to.commit([received])
    copied += 1
    bytes += size
    return null
  }

  /** Bytes in the catalog were copied with its rows. */
  async function verifyContent(item: AuditedItem): Promise<CopyFault | null> {
    const blob = await openItem({ audit, blobs: from }, item)
    if (blob === null) return 'missing'
    if (blob.size !== item.size || Buffer.compare(await hashBlob(blob), item.sha256) !== 0) return 'changed'
    inCatalog += 1
    return null
  }

  async function copyItem(item: AuditedItem): Promise<void> {
    const { id } = item
    const what = isItemId(id) ? await copy(item) : 'malformed'
    if (what !== null) faulty.push({ id, what })
    items += 1
    onItem(item)
  }

  for await (const batch of itemBatches(audit))
    for (const result of await settleAll(batch, parallelism, copyItem))
      if (result.status === 'rejected') throw result.reason
  return { items, copied, bytes, present, inCatalog, faulty }
}

async function open(
  store: Pick<BlobStore, 'open'>,
  id: ItemId,
): Promise<OpenBlob | 'foreign' | 'unreadable' | null> {
  try {
    return await store.open(id)
  } catch (error) {
    if (error instanceof Fault && error.code === 'media-unknown') return 'foreign'
    if (error instanceof Error && 'syscall' in error) return 'unreadable'
    throw error
  }
}

/** Null if the source cannot be read to its end. */
async function receive(to: BlobStore, id: ItemId, blob: OpenBlob): Promise<ReceivedBlob | null> {
  try {
    return await readAll(to, id, blob)
  } catch (error) {
    if (error instanceof UnreadableSource) return null
    throw error
  }
}

async function readAll(to: BlobStore, id: ItemId, blob: OpenBlob): Promise<ReceivedBlob> {
  const { size } = blob
  if (size === 0) await blob.close()
  return await to.receive(id, size === 0 ? nothing() : readable(blob), size)
}

async function* readable(blob: OpenBlob): AsyncGenerator<Uint8Array> {
  const chunks = blob.stream(0, blob.size - 1)[Symbol.asyncIterator]()
  try {
    for (;;) {
      const { done, value } = await chunks.next().catch((cause: unknown) => {
        throw new UnreadableSource('The source cannot be read.', { cause })
      })
      if (done) return
      yield value
    }
  } finally {
    await chunks.return?.()
  }
}

async function* nothing(): AsyncGenerator<Uint8Array> {}
