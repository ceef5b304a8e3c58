import { createHash } from 'node:crypto'
import type { BlobStore, ReceivedBlob } from '../blobs/blobs.ts'
import type { BucketId, Catalog, IdempotentRequest, Media, NewMedia, TokenId } from '../catalog/catalog.ts'
import { Fault } from '../core/fault.ts'
import { createMediaIds } from '../core/media-id.ts'
import { settleAll } from '../core/settle-all.ts'
import { newItem } from './new-item.ts'
import type { MeasurePicture } from './pictures/measure-picture.ts'
import { createQuotaReservations, noReservation, type QuotaReservation } from './space/quota-reservations.ts'

/** A file on its way in; `filename` and `declaredType` are as the client sent them. */
export interface IncomingFile {
  readonly source: AsyncIterable<Uint8Array>
  readonly filename: string | null
  readonly declaredType: string | null
}

interface StoreOptions {
  /** What makes the request one that may be sent again (docs/interface.md I1). */
  readonly key?: { readonly tokenId: TokenId; readonly key: string } | null
  /** Bytes that the files will have together, where that is known beforehand. */
  readonly declaredBytes?: number
  /** The size of the only file, where that is known; bytes. */
  readonly atMost?: number | null
}

interface Stored {
  readonly media: readonly Media[]
  /** An earlier request with the same key stored them. */
  readonly repeated: boolean
}

export type StoreMedia = (
  bucketId: BucketId,
  files: AsyncIterable<IncomingFile>,
  options?: StoreOptions,
) => Promise<Stored>

/** Each waits for syncs of the disk; more at once would leave other requests too few of the pool's threads. */
const atOnce = 4

/** For how long a key stands for its first request (docs/interface.md I5). Milliseconds. */
const keyLifetime = 86_400_000

/**
 * Stores the files in the order given: all of them or none (docs/interface.md U2), durable when it resolves. Each is
 * read to its end before the next one is asked for. No files are no items.
 */
export function storeMediaOperation(parts: {
  readonly catalog: Pick<Catalog, 'addMedia' | 'addMediaOnce' | 'findRepeated' | 'bucket'>
  readonly blobs: BlobStore
  readonly measurePicture: MeasurePicture
  /** Bytes. */
  readonly maxFileSize: number
  readonly now: () => number
}): StoreMedia {
  const { catalog, blobs, maxFileSize, now } = parts
  const reserve = createQuotaReservations(parts)
  const newId = createMediaIds(now)

  async function receiveAll(
    files: AsyncIterable<IncomingFile>,
    reservation: QuotaReservation,
    { declaredBytes = 0, atMost = null }: StoreOptions,
  ): Promise<Arrival[]> {
    const arrivals: Arrival[] = []
    const received: ReceivedBlob[] = []
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
      for await (const file of files) {
        await reservation.hold({ items: received.length + 1, bytes })
        const blob = await blobs.receive(reserving(file.source), { limit: maxFileSize, atMost })
        received.push(blob)
        const item = await newItem(parts, blob, { ...file, id: newId(), createdAt: now() })
        arrivals.push({ file, blob, item })
      }
    } catch (error) {
      await discardAll(received)
      throw error
    }
    return arrivals
  }

  async function keepAll(arrivals: readonly Arrival[]): Promise<void> {
    for (const kept of await settleAll(arrivals, atOnce, ({ blob, item }) => blobs.commit(blob, item.id)))
      if (kept.status === 'rejected') throw kept.reason
  }

  // What cannot be undone now is found later: temporary bytes at the next start, bytes without a row by a check.
  const discardAll = (received: readonly ReceivedBlob[]) =>
    settleAll(received, atOnce, (blob) => blobs.discard(blob))
  const removeAll = (items: readonly NewMedia[]) => settleAll(items, atOnce, ({ id }) => blobs.remove(id))

  /** The items that stand for the request: these, or those of the first request with the same key. */
  async function commit(
    bucketId: BucketId,
    items: readonly NewMedia[],
    request: IdempotentRequest | null,
  ): Promise<readonly NewMedia[]> {
    if (request) return catalog.addMediaOnce(bucketId, items, request)
    await catalog.addMedia(bucketId, items)
    return items
  }

  async function store(
    bucketId: BucketId,
    arrivals: readonly Arrival[],
    request: IdempotentRequest | null,
    reservation: QuotaReservation,
  ): Promise<{ items: readonly NewMedia[]; repeated: boolean }> {
    const items = arrivals.map(({ item }) => item)
    try {
      const first = request && (await catalog.findRepeated(request))
      if (first) {
        await discardAll(arrivals.map(({ blob }) => blob))
        return { items: first, repeated: true }
      }
      await keepAll(arrivals)
    } catch (error) {
      await Promise.all([discardAll(arrivals.map(({ blob }) => blob)), removeAll(items)])
      throw error
    }
    try {
      reservation.settle()
      const standing = await commit(bucketId, items, request)
      const repeated = standing[0]?.id !== items[0]?.id
      if (repeated) await removeAll(items)
      else blobs.markCommitted(items.map(({ id }) => id))
      return { items: standing, repeated }
    } catch (error) {
      // Any other error may have come after the commit; bytes that a row may name are never destroyed.
      if (error instanceof Fault && certainlyAbsent.has(error.code)) await removeAll(items)
      throw error
    }
  }

  return async (bucketId, files, options = {}) => {
    const { key = null } = options
    // A request that is sent again needs no room, and only its content tells; the catalog judges it at the commit.
    const reservation = key ? noReservation : reserve(bucketId)
    try {
      const arrivals = await receiveAll(files, reservation, options)
      if (arrivals.length === 0) return { media: [], repeated: false }
      const at = now()
      const request = key && {
        ...key,
        fingerprint: fingerprintOf(arrivals),
        now: at,
        expiresAt: at + keyLifetime,
      }
      const { items, repeated } = await store(bucketId, arrivals, request, reservation)
      return { media: items.map((item) => ({ ...item, bucketId })), repeated }
    } finally {
      reservation.release()
    }
  }
}

interface Arrival {
  readonly file: IncomingFile
  readonly blob: ReceivedBlob
  readonly item: NewMedia
}

/** Equal for requests that would store the same: bytes, names and types, in this order (docs/interface.md I2). */
function fingerprintOf(arrivals: readonly Arrival[]): Uint8Array {
  const content = arrivals.map(({ file: { filename, declaredType }, blob: { sha256 } }) => [
    filename,
    declaredType,
    Buffer.from(sha256).toString('hex'),
  ])
  return createHash('sha256').update(JSON.stringify(content)).digest()
}

/** The faults with which a catalog says that it has not written the rows. */
const certainlyAbsent: ReadonlySet<string> = new Set([
  'storage-full',
  'catalog-busy',
  'quota-exceeded',
  'idempotency-key-reused',
  'token-revoked',
])
