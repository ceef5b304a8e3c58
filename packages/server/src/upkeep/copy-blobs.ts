import type { BlobStore } from '../blobs/blobs.ts'
import type { AuditedItem, CatalogAudit } from '../catalog/audit.ts'
import type { MediaId } from '../core/media-id.ts'
import { settleAll } from '../media/in-parallel.ts'
import { eachItem } from './each-item.ts'

export interface Copied {
  readonly items: number
  /** Items whose bytes were copied, and how many bytes. */
  readonly copied: number
  readonly bytes: number
  /** Items whose bytes stood there already, with the right size. */
  readonly present: number
  /** Items whose bytes are not, or not whole, where they should come from; nothing is copied of them. */
  readonly faulty: readonly { readonly id: MediaId; readonly what: 'missing' | 'changed' }[]
}

const atOnce = 8

/** Copies the bytes of every item from one store to another, hashing them in passing, synced when it resolves. */
export async function copyBlobs(parts: {
  readonly audit: Pick<CatalogAudit, 'items'>
  readonly from: Pick<BlobStore, 'open'>
  readonly to: BlobStore
  readonly onItem: (item: AuditedItem) => void
}): Promise<Copied> {
  const { audit, from, to, onItem } = parts
  const faulty: { id: MediaId; what: 'missing' | 'changed' }[] = []
  let [items, copied, bytes, present] = [0, 0, 0, 0]

  async function copy({ id, size, sha256 }: AuditedItem & { readonly sha256: Uint8Array }): Promise<void> {
    const there = await to.open(id)
    await there?.close()
    if (there?.size === size) {
      present += 1
      return
    }
    const blob = await from.open(id)
    if (blob === null || blob.size !== size) {
      await blob?.close()
      faulty.push({ id, what: blob === null ? 'missing' : 'changed' })
      return
    }
    if (size === 0) await blob.close()
    const received = await to.receive(size === 0 ? nothing() : blob.stream(0, size - 1), {
      limit: size,
      atMost: size,
    })
    if (Buffer.compare(received.sha256, sha256) !== 0) {
      await to.discard(received)
      faulty.push({ id, what: 'changed' })
      return
    }
    // Of another size: what an earlier copy must not have left.
    if (there !== null) await to.remove(id)
    await to.keep(received, id)
    copied += 1
    bytes += size
  }

  async function copyItem(item: AuditedItem): Promise<void> {
    // Rows that were seeded without bytes have none to copy.
    const { sha256 } = item
    if (sha256 !== null) await copy({ ...item, sha256 })
    items += 1
    onItem(item)
  }

  for await (const chunk of eachItem(audit))
    for (const result of await settleAll(chunk, atOnce, copyItem))
      if (result.status === 'rejected') throw result.reason
  return { items, copied, bytes, present, faulty }
}

async function* nothing(): AsyncGenerator<Uint8Array> {}
