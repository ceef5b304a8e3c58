import { createHash } from 'node:crypto'
import type { BlobStore, ReceivedBlob } from '../blobs/blobs.ts'
import type {
  BucketId,
  Catalog,
  IdempotentRequest,
  NewMedia,
  NewMediaContent,
  TokenId,
} from '../catalog/catalog.ts'
import { Fault } from '../core/fault.ts'
import { createMediaIds, type MediaId } from '../core/media-id.ts'
import { settleAll } from '../core/settle-all.ts'
import { newItem } from './new-item.ts'
import type { MeasurePicture } from './pictures/measure-picture.ts'
import { bytesOf, type FileReceiver, type ReceivedFile } from './receive-files.ts'
import { createQuotaReservations, noReservation, type QuotaReservation } from './space/quota-reservations.ts'

/** A file being received; `filename` and `declaredType` are as sent by the client. */
export interface IncomingFile {
  readonly source: AsyncIterable<Uint8Array>
  readonly filename: string | null
  readonly declaredType: string | null
}

interface StoreOptions {
  /** The idempotency key (docs/interface.md I1). */
  readonly key?: { readonly tokenId: TokenId; readonly key: string } | null
  /** The total size of the files in bytes, if known. */
  readonly declaredBytes?: number
  /** The size of the only file in bytes, if known. */
  readonly atMost?: number | null
}

interface Stored {
  readonly media: readonly NewMedia[]
  /** True if an earlier request with the same key stored them. */
  readonly repeated: boolean
}

export type StoreMedia = (
  bucketId: BucketId,
  files: AsyncIterable<IncomingFile>,
  options?: StoreOptions,
) => Promise<Stored>

/** Files of the blob store that are committed in parallel for one request. More would leave other requests too few threads of libuv's pool. */
const parallelism = 4

/** Milliseconds until an idempotency key expires (docs/interface.md I5). */
const keyLifetime = 86_400_000

/**
 * Stores the files in the given order: all of them or none (docs/interface.md U2), durable when it resolves. Reads each file
 * to its end before it takes the next one. Without files, it stores nothing.
 */
export function storeMediaOperation(parts: {
  readonly catalog: Pick<Catalog, 'addMedia' | 'addMediaOnce' | 'findRepeated' | 'bucket'>
  readonly blobs: BlobStore
  readonly newReceiver: () => FileReceiver
  readonly measurePicture: MeasurePicture
  /** Bytes. */
  readonly maxFileSize: number
  readonly now: () => number
}): StoreMedia {
  const { catalog, blobs, newReceiver, maxFileSize, now } = parts
  const reserve = createQuotaReservations(parts)
  const newId = createMediaIds(now)

  async function receiveAll(
    files: AsyncIterable<IncomingFile>,
    reservation: QuotaReservation,
    receiver: FileReceiver,
    { declaredBytes = 0, atMost = null }: StoreOptions,
  ): Promise<Arrival[]> {
    const arrivals: Arrival[] = []
    const received: ReceivedFile[] = []
    let bytes = 0
    async function* reserving(source: IncomingFile['source']): AsyncGenerator<Uint8Array> {
      for await (const chunk of source) {
        bytes += chunk.byteLength
        await reservation.hold({ items: received.length + 1, bytes })
        yield chunk
      }
    }
    try {
      await reservation.hold({ items: 1, bytes: declaredBytes })
      for await (const sent of files) {
        await reservation.hold({ items: received.length + 1, bytes })
        const file = await receiver.receive(reserving(sent.source), maxFileSize, atMost)
        received.push(file)
        const item = await newItem(parts, file, { ...sent, id: newId(), createdAt: now() })
        arrivals.push({ sent, file, item })
      }
    } catch (error) {
      await discardAll(received.filter(isBlob))
      throw error
    }
    return arrivals
  }

  async function commitAll(stored: readonly StoredBlob[]): Promise<void> {
    for (const result of await settleAll(stored, parallelism, ({ blob, id }) => blobs.commit(blob, id)))
      if (result.status === 'rejected') throw result.reason
  }

  // If a removal fails, the next start removes temporary files and files without a row.
  const discardAll = (received: readonly ReceivedBlob[]) =>
    settleAll(received, parallelism, (blob) => blobs.discard(blob))
  const removeAll = (stored: readonly StoredBlob[]) =>
    settleAll(stored, parallelism, ({ id }) => blobs.remove(id))

  /** Returns the stored items: these, or those of the first request with the same key. */
  async function commit(
    bucketId: BucketId,
    items: readonly NewMediaContent[],
    request: IdempotentRequest | null,
  ): Promise<readonly NewMedia[]> {
    if (request) return catalog.addMediaOnce(bucketId, items, request)
    await catalog.addMedia(bucketId, items)
    return items.map(({ item }) => item)
  }

  async function store(
    bucketId: BucketId,
    arrivals: readonly Arrival[],
    request: IdempotentRequest | null,
    reservation: QuotaReservation,
  ): Promise<{ items: readonly NewMedia[]; repeated: boolean }> {
    const items = arrivals.map(({ item, file }) => ({ item, bytes: bytesOf(file) }))
    const stored = arrivals.flatMap(({ item: { id }, file }) => (isBlob(file) ? [{ blob: file, id }] : []))
    const received = stored.map(({ blob }) => blob)
    try {
      const first = request && (await catalog.findRepeated(request))
      if (first) {
        await discardAll(received)
        return { items: first, repeated: true }
      }
      await commitAll(stored)
    } catch (error) {
      await Promise.all([discardAll(received), removeAll(stored)])
      throw error
    }
    try {
      reservation.settle()
      const committed = await commit(bucketId, items, request)
      const repeated = committed[0]?.id !== items[0]?.item.id
      if (repeated) await removeAll(stored)
      else blobs.markCommitted(stored.map(({ id }) => id))
      return { items: committed, repeated }
    } catch (error) {
      // After any other error, the rows may be committed, so their bytes stay.
      if (error instanceof Fault && notCommitted.has(error.code)) await removeAll(stored)
      throw error
    }
  }

  return async (bucketId, files, options = {}) => {
    const { key = null } = options
    // A repeated request needs no space, and is recognized only by its content, so the catalog checks the quota.
    const reservation = key ? noReservation : reserve(bucketId)
    const receiver = newReceiver()
    try {
      const arrivals = await receiveAll(files, reservation, receiver, options)
      if (arrivals.length === 0) return { media: [], repeated: false }
      const at = now()
      const request = key && {
        ...key,
        fingerprint: fingerprintOf(arrivals),
        now: at,
        expiresAt: at + keyLifetime,
      }
      const { items, repeated } = await store(bucketId, arrivals, request, reservation)
      return { media: items, repeated }
    } finally {
      receiver.release()
      reservation.release()
    }
  }
}

interface Arrival {
  readonly sent: IncomingFile
  readonly file: ReceivedFile
  readonly item: NewMedia
}

/** A file of the blob store, and the id of its item. */
interface StoredBlob {
  readonly blob: ReceivedBlob
  readonly id: MediaId
}

const isBlob = (file: ReceivedFile): file is ReceivedBlob => 'handle' in file

/** Equal for requests with the same bytes, names and types in the same order (docs/interface.md I2). */
function fingerprintOf(arrivals: readonly Arrival[]): Uint8Array {
  const content = arrivals.map(({ sent: { filename, declaredType }, file: { sha256 } }) => [
    filename,
    declaredType,
    Buffer.from(sha256).toString('hex'),
  ])
  return createHash('sha256').update(JSON.stringify(content)).digest()
}

/** Faults after which the rows are certainly not committed. */
const notCommitted: ReadonlySet<string> = new Set([
  'storage-full',
  'catalog-busy',
  'quota-exceeded',
  'idempotency-key-reused',
  'token-revoked',
])
