import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { errorCode, Fault } from '../core/faults.ts'
import { type ItemId, isItemId } from '../core/ids.ts'
import { settleAll } from '../core/tasks.ts'
import { type BlobStore, BlobTruncatedError, type OpenBlob } from '../storage/blobs/blobs.ts'
import { openMemoryBlob, readLength } from '../storage/blobs/memory-blob.ts'
import type { ReceivedBlob } from '../storage/blobs/received-file.ts'
import {
  type CatalogInspection,
  type InspectedItem,
  itemBatches,
} from '../storage/catalog/checks/inspection.ts'
import { hasLittleMemory } from '../storage/memory.ts'

/** Why a backup or a restore did not copy the bytes of an item. The codes are stable: programs read them. */
export const copyFaults = {
  missing: 'the bytes do not exist',
  changed: 'the bytes are not those that were uploaded',
  unreadable: 'the bytes cannot be read',
  lost: 'the row of the item cannot be read, so the backup does not have the item',
  foreign: 'the path of the bytes is a link, a directory or a special file',
  malformed: 'the row has an id that the service did not create',
  blocked: 'the path of the copy is in use by a file that no backup wrote',
} as const

export type CopyFault = keyof typeof copyFaults

/** An item whose bytes were not copied. */
export interface FaultyItem {
  readonly id: ItemId
  readonly what: CopyFault
}

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
const parallelism = hasLittleMemory ? 2 : 8

/** A failed read concerns one item; a failed write concerns the whole target. */
class UnreadableSource extends Error {
  override readonly name = 'UnreadableSource'
}

/**
 * Copies the bytes of every item from one store to another, unless the catalog has them, and verifies their hashes; durable
 * when it resolves. Reports items whose bytes cannot be copied and copies the others. Rejects if the target cannot be written.
 */
export async function copyBlobs(parts: {
  readonly inspection: Pick<CatalogInspection, 'items' | 'content'>
  readonly from: Pick<BlobStore, 'open'>
  readonly to: BlobStore
  readonly onItem: (item: InspectedItem) => void
}): Promise<CopyResult> {
  const { inspection, from, to, onItem } = parts
  const readChunks = createChunkReader()
  const faulty: FaultyItem[] = []
  let [items, copied, bytes, present, inCatalog] = [0, 0, 0, 0, 0]

  async function copy(item: InspectedItem): Promise<CopyFault | null> {
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
    const received = await receive(to, id, blob, readChunks)
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
  async function verifyContent(item: InspectedItem): Promise<CopyFault | null> {
    const blob = await openItem({ inspection, blobs: from }, item)
    if (blob === null) return 'missing'
    if (blob.size !== item.size || Buffer.compare(await hashBlob(blob, readChunks), item.sha256) !== 0)
      return 'changed'
    inCatalog += 1
    return null
  }

  async function copyItem(item: InspectedItem): Promise<void> {
    const { id } = item
    const what = isItemId(id) ? await copy(item) : 'malformed'
    if (what !== null) faulty.push({ id, what })
    items += 1
    onItem(item)
  }

  for await (const batch of itemBatches(inspection))
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
async function receive(
  to: BlobStore,
  id: ItemId,
  blob: OpenBlob,
  readChunks: ReadChunks,
): Promise<ReceivedBlob | null> {
  try {
    return await readAll(to, id, blob, readChunks)
  } catch (error) {
    if (error instanceof UnreadableSource) return null
    throw error
  }
}

async function readAll(
  to: BlobStore,
  id: ItemId,
  blob: OpenBlob,
  readChunks: ReadChunks,
): Promise<ReceivedBlob> {
  const { size } = blob
  if (size === 0) await blob.close()
  return await to.receive(id, size === 0 ? nothing() : readable(blob, readChunks), size)
}

async function* readable(blob: OpenBlob, readChunks: ReadChunks): AsyncGenerator<Uint8Array> {
  const chunks = readChunks(blob)[Symbol.asyncIterator]()
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

/** All bytes of a blob that is not empty. A chunk is valid until the next one is requested. Closes the blob. */
export type ReadChunks = (blob: OpenBlob) => AsyncIterable<Uint8Array>

/**
 * For the blobs of one operation. Files are read into memory that is used again: new memory for each read would stay until a garbage
 * collection, which the copy of large files causes rarely.
 */
export function createChunkReader(): ReadChunks {
  const spare: Buffer<ArrayBuffer>[] = []

  /** Reads one block while the other one is processed. */
  async function* readFile(blob: OpenBlob): AsyncGenerator<Uint8Array, void, void> {
    const blocks: Buffer<ArrayBuffer>[] = []
    async function read(index: number): Promise<Uint8Array> {
      const block = blocks[index % 2] ?? spare.pop() ?? Buffer.allocUnsafeSlow(readLength)
      blocks[index % 2] = block
      const position = index * readLength
      const bytes = block.subarray(0, blob.size - position)
      await blob.read(bytes, position)
      return bytes
    }
    let reading = read(0)
    try {
      for (let index = 1; ; index += 1) {
        const bytes = await reading
        const isLast = index * readLength >= blob.size
        if (!isLast) reading = read(index)
        // A failure is reported when the block is requested.
        reading.catch(() => undefined)
        yield bytes
        if (isLast) return
      }
    } finally {
      await reading.catch(() => undefined)
      spare.push(...blocks)
      await blob.close()
    }
  }

  return (blob) => (blob.content.type === 'file' ? readFile(blob) : blob.stream(0, blob.size - 1))
}

/** The bytes of an item, from the catalog or the blob store; null if they are missing. Throws as `BlobStore.open`. */
export async function openItem(
  parts: { readonly inspection: Pick<CatalogInspection, 'content'>; readonly blobs: Pick<BlobStore, 'open'> },
  { id, contentId }: Pick<InspectedItem, 'id' | 'contentId'>,
): Promise<OpenBlob | null> {
  if (contentId === null) return parts.blobs.open(id)
  const bytes = await parts.inspection.content(contentId)
  return bytes && openMemoryBlob(bytes)
}

/** The SHA-256 of a file, in hexadecimal. */
export async function hashFile(path: string): Promise<string> {
  const hash = createHash('sha256')
  for await (const chunk of createReadStream(path)) hash.update(chunk)
  return hash.digest('hex')
}

/** The SHA-256 of the whole blob, 32 bytes, or its MD5. Closes the blob. */
export async function hashBlob(
  blob: OpenBlob,
  readChunks: ReadChunks,
  algorithm: 'sha256' | 'md5' = 'sha256',
): Promise<Buffer> {
  const hash = createHash(algorithm)
  if (blob.content.type === 'bytes') hash.update(blob.content.bytes)
  if (blob.content.type === 'bytes' || blob.size === 0) await blob.close()
  else for await (const chunk of readChunks(blob)) hash.update(chunk)
  return hash.digest()
}

/** Whether an error is about the bytes of one item, not about the catalog or the whole store. */
export function isUnreadable(error: unknown): boolean {
  // The store throws it for an entry that is not a regular file (docs/interface.md B8).
  if (error instanceof Fault) return error.code === 'media-unknown'
  return error instanceof BlobTruncatedError || ['EIO', 'EACCES'].includes(errorCode(error) ?? '')
}
