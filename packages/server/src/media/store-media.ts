import type { BlobStore } from '../blobs/blobs.ts'
import type { Catalog } from '../catalog/catalog.ts'
import type { Actor } from '../core/actor.ts'
import { createItemIds } from '../core/media-id.ts'
import {
  type Arrival,
  blobsOf,
  type CommitCatalog,
  commitFilesOperation,
  type RequestKey,
  type Stored,
} from './commit-files.ts'
import { type ItemParts, newItem, type OnStored, type UploadBucket } from './new-item.ts'
import type { FileReceiver, ReceivedFile } from './receive-files.ts'
import { createQuotaReservations, noReservation, type QuotaReservation } from './space/quota-reservations.ts'

/** A file being received; `filename` and `declaredType` are as sent by the client. */
export interface IncomingFile {
  /** All bytes if they have arrived already, otherwise their source. Valid until the next files are requested. */
  readonly body: Uint8Array | AsyncIterable<Uint8Array>
  readonly filename: string | null
  readonly declaredType: string | null
}

/** Files in groups that arrive together. */
export type IncomingFiles = AsyncIterable<readonly IncomingFile[]>

interface StoreOptions {
  readonly by: Actor
  readonly key?: RequestKey | null
  /** When the items expire; null or left out for never. */
  readonly expiresAt?: number | null
  /** The total size of the files in bytes, if known. */
  readonly declaredBytes?: number
  /** The size of the only file in bytes, if known. */
  readonly atMost?: number | null
}

export type StoreItems = ReturnType<typeof storeItemsOperation>

/**
 * Stores the files in the given order: all of them or none (docs/interface.md U2), durable when it resolves. Reads each file
 * to its end before it takes the next one. Without files, it stores nothing.
 */
export function storeItemsOperation(
  parts: Omit<ItemParts, 'blobs'> & {
    readonly catalog: CommitCatalog & Pick<Catalog, 'bucket'>
    readonly blobs: BlobStore
    readonly newReceiver: () => FileReceiver
    readonly onStored: OnStored
    /** Bytes. */
    readonly maxFileSize: number
    readonly now: () => number
  },
) {
  const { blobs, newReceiver, maxFileSize, now } = parts
  const reserve = createQuotaReservations(parts)
  const newId = createItemIds(now)
  const commitFiles = commitFilesOperation(parts)

  async function receiveAll(
    bucket: UploadBucket,
    files: IncomingFiles,
    reservation: QuotaReservation,
    receiver: FileReceiver,
    { declaredBytes = 0, atMost = null, expiresAt = null }: StoreOptions,
  ): Promise<Arrival[]> {
    const arrivals: Arrival[] = []
    const received: { file: ReceivedFile }[] = []
    let bytes = 0
    async function* reserving(
      source: Iterable<Uint8Array> | AsyncIterable<Uint8Array>,
    ): AsyncGenerator<Uint8Array> {
      for await (const chunk of source) {
        bytes += chunk.byteLength
        await reservation.hold({ items: arrivals.length + 1, bytes })
        yield chunk
      }
    }
    async function receiveOne({ body, filename, declaredType }: IncomingFile): Promise<void> {
      const [whole, source] = body instanceof Uint8Array ? [body, [body]] : [null, body]
      const id = newId()
      const inMemory = whole && receiver.receiveWhole(whole, maxFileSize)
      if (inMemory) bytes += inMemory.size
      const file = inMemory ?? (await receiver.receive(id, reserving(source), maxFileSize, atMost))
      received.push({ file })
      const { item, stored } = await newItem(parts, file, bucket, {
        ...{ id, filename, declaredType, expiresAt },
        createdAt: now(),
      })
      arrivals.push({ sent: { filename, declaredType, sha256: file.sha256 }, file: stored, item })
      if (stored === file) return
      received.push({ file: stored })
      await blobs.discard(blobsOf([{ file }]))
    }
    try {
      await reservation.hold({ items: 1, bytes: declaredBytes })
      for await (const group of files) {
        await reservation.hold({ items: arrivals.length + group.length, bytes: bytes + arrivedBytes(group) })
        for (const file of group) await receiveOne(file)
      }
    } catch (error) {
      await blobs.discard(blobsOf(received))
      throw error
    }
    return arrivals
  }

  return async function storeItems(
    bucket: UploadBucket,
    files: IncomingFiles,
    options: StoreOptions,
  ): Promise<Stored> {
    const { bucketId } = bucket
    const { by, key = null } = options
    // A repeated request needs no space, and is recognized only by its content, so the catalog checks the quota.
    const reservation = key ? noReservation : reserve(bucketId)
    const receiver = newReceiver()
    try {
      const arrivals = await receiveAll(bucket, files, reservation, receiver, options)
      if (arrivals.length === 0) return { items: [], repeated: false }
      return await commitFiles(bucketId, arrivals, { by, key, onCommit: reservation.settle })
    } finally {
      receiver.release()
      reservation.release()
    }
  }
}

/** The bytes of the files that have arrived completely. */
const arrivedBytes = (files: readonly IncomingFile[]): number =>
  files.reduce((sum, { body }) => sum + (body instanceof Uint8Array ? body.byteLength : 0), 0)
