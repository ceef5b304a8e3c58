import { createHash } from 'node:crypto'
import { hasTiffStructure, isRawExtension } from '@mediabucket/strip-metadata'
import { Fault } from '../core/faults.ts'
import { createItemIds, type ItemId } from '../core/ids.ts'
import type { Labels } from '../core/labels.ts'
import { cleanFilename, cleanPath, extensionOf } from '../core/names.ts'
import { maxFileSizeOf, requireFileSize, requireType, withFixedLabels } from '../core/quotas.ts'
import { storedType } from '../core/stored-type.ts'
import type { Actor } from '../core/tokens.ts'
import { isDecoded } from '../core/variants.ts'
import type { MeasurePicture, ReadTaken, RemoveMetadata } from '../pictures/received-pictures.ts'
import type { BlobStore } from '../storage/blobs/blobs.ts'
import type { ReceivedBlob, ReceivedFile } from '../storage/blobs/received-file.ts'
import type { Catalog } from '../storage/catalog/catalog.ts'
import type { AddedItem, BucketId, Grant, IdempotentRequest, NewItem } from '../storage/catalog/records.ts'
import { sniffType } from './file-type.ts'
import { type FileReceiver, receivedBytes } from './received-files.ts'
import {
  createKeyedReservations,
  createUploadReservations,
  type RequestKey,
  type Reservation,
} from './reservations.ts'
import type { FreeSpace, SpaceClaim } from './space.ts'

/** What a client says about a file, as it was sent. */
export interface SentFile {
  /** Its last name; what is before it is the path within a folder. */
  readonly filename: string | null
  readonly declaredType: string | null
  /** Null or left out for none. */
  readonly labels?: Labels | null
}

/** A file being received. */
export interface IncomingFile {
  readonly sent: SentFile
  /** All bytes if they have arrived already, otherwise their source. Valid until the next files are requested. */
  readonly body: Uint8Array | AsyncIterable<Uint8Array>
}

/** Files in groups that arrive together. */
export type IncomingFiles = Iterable<readonly IncomingFile[]> | AsyncIterable<readonly IncomingFile[]>

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

/** Parts of the uploads of one request. */
interface Receiving {
  readonly receiver: FileReceiver
  readonly reservation: Reservation
  readonly claim: SpaceClaim
}

export type StoreOperations = ReturnType<typeof storeOperations>

export function storeOperations(
  parts: Omit<ItemParts, 'blobs'> &
    CommitParts & {
      readonly catalog: Pick<Catalog, 'bucket' | 'token' | 'findKeyed'>
      readonly blobs: BlobStore
      readonly newReceiver: () => FileReceiver
      readonly space: Pick<FreeSpace, 'claim'>
      /** Bytes. */
      readonly maxFileSize: number
    },
) {
  const { blobs, newReceiver, space, maxFileSize, now } = parts
  const reserve = createUploadReservations(parts)
  const reserveKeyed = createKeyedReservations({ ...parts, reserve })
  const newId = createItemIds(now)
  const commitFiles = commitFilesOperation(parts)

  async function receiveAll(
    bucket: UploadBucket,
    files: IncomingFiles,
    { receiver, reservation, claim }: Receiving,
    { declaredBytes = 0, atMost = null, expiresAt = null }: StoreOptions,
  ): Promise<Arrival[]> {
    const arrivals: Arrival[] = []
    const received: ReceivedFile[] = []
    const largest = maxFileSizeOf(bucket.limits, maxFileSize)
    let bytes = 0
    async function* holding(source: AsyncIterable<Uint8Array> | Iterable<Uint8Array>, isClaimed: boolean) {
      let size = 0
      for await (const chunk of source) {
        if (!isClaimed) claim.arrived(chunk.byteLength)
        size += chunk.byteLength
        requireFileSize(bucket.limits, size)
        bytes += chunk.byteLength
        await reservation.hold({ items: arrivals.length + 1, bytes })
        yield chunk
      }
    }
    async function receiveOne({ sent, body }: IncomingFile): Promise<void> {
      const id = newId()
      const whole = body instanceof Uint8Array ? body : null
      if (whole) requireFileSize(bucket.limits, whole.byteLength)
      const inMemory = whole && receiver.receiveWhole(whole, largest)
      if (inMemory) bytes += inMemory.size
      const source = body instanceof Uint8Array ? holding([body], true) : holding(body, false)
      const file = inMemory ?? (await receiver.receive(id, source, largest, atMost))
      received.push(file)
      const { item, stored } = await newItem(parts, file, bucket, sent, { id, createdAt: now(), expiresAt })
      arrivals.push({ sent, sha256: file.sha256, size: file.size, file: stored, item })
      if (stored === file) return
      received.push(stored)
      await blobs.discard(blobsOf([file]))
    }
    try {
      await reservation.hold({ items: 1, bytes: declaredBytes })
      for await (const group of files) {
        const arrived = arrivedBytes(group)
        if (arrived > 0) claim.arrived(arrived)
        await reservation.hold({ items: arrivals.length + group.length, bytes: bytes + arrived })
        for (const file of group) await receiveOne(file)
      }
    } catch (error) {
      await blobs.discard(blobsOf(received))
      throw error
    }
    return arrivals
  }

  /**
   * Stores the files in the given order: all of them or none (docs/interface.md U2), durable when it resolves. Reads each file
   * to its end before it takes the next one. Without files, it stores nothing.
   */
  async function storeItems(
    bucket: UploadBucket,
    files: IncomingFiles,
    options: StoreOptions,
  ): Promise<Stored> {
    const { by, key = null, declaredBytes = 0, atMost } = options
    const claim = space.claim(atMost ?? declaredBytes)
    const reservation = key === null ? reserve(bucket) : reserveKeyed(key, bucket)
    const receiver = newReceiver()
    try {
      const arrivals = await receiveAll(bucket, files, { receiver, reservation, claim }, options)
      if (arrivals.length === 0) return { items: [], repeated: false }
      return await commitFiles(bucket, arrivals, { by, key, onCommit: reservation.settle })
    } finally {
      receiver.release()
      reservation.release()
      claim.release()
    }
  }

  /**
   * Stores a small file that has arrived completely with less work than storeItems: nothing is streamed, and only the commit checks the quota.
   * Passes it to storeItems if it is not small, or if the memory for small files is in use. Takes over the memory of the bytes.
   */
  async function storeSmallFile(
    bucket: UploadBucket,
    bytes: Uint8Array,
    sent: SentFile,
    { by, key, expiresAt }: Required<Pick<StoreOptions, 'by' | 'key' | 'expiresAt'>>,
  ): Promise<Stored> {
    const size = bytes.byteLength
    requireFileSize(bucket.limits, size)
    const receiver = newReceiver()
    if (!receiver.reserve(size))
      return storeItems(bucket, [[{ sent, body: bytes }]], {
        ...{ by, key, expiresAt },
        ...{ declaredBytes: size, atMost: size },
      })
    try {
      const claim = space.claim(size)
      try {
        const file = receivedBytes(bytes)
        const { item, stored } = await newItem(parts, file, bucket, sent, {
          ...{ id: newId(), createdAt: now(), expiresAt },
        })
        const arrival = { sent, sha256: file.sha256, size, file: stored, item }
        return await commitFiles(bucket, [arrival], { by, key })
      } finally {
        claim.release()
      }
    } finally {
      receiver.release()
    }
  }

  return { storeItems, storeSmallFile }
}

/** The bytes of the files that have arrived completely. */
const arrivedBytes = (files: readonly IncomingFile[]): number =>
  files.reduce((sum, { body }) => sum + (body instanceof Uint8Array ? body.byteLength : 0), 0)

/** What a client sent, the file that is stored, and its item. */
interface Arrival {
  readonly sent: SentFile
  /** Of the bytes as they were sent; 32 bytes. */
  readonly sha256: Uint8Array
  /** Of these bytes. */
  readonly size: number
  readonly file: ReceivedFile
  readonly item: AddedItem
}

export interface Stored {
  readonly items: readonly NewItem[]
  /** True if an earlier request with the same key stored them. */
  readonly repeated: boolean
}

interface CommitOptions {
  readonly by: Actor
  readonly key: RequestKey | null
  /** Called before the commit of the rows. */
  readonly onCommit?: () => void
}

/** Milliseconds. */
const day = 86_400_000

/** Milliseconds until an idempotency key expires (docs/interface.md I5). */
const keyLifetime = day

interface CommitParts {
  readonly catalog: Pick<Catalog, 'addItems' | 'addLimitedItems' | 'addItemsOnce' | 'findRepeated'>
  readonly blobs: Pick<BlobStore, 'commit' | 'discard'>
  readonly onStored: OnStored | null
  readonly now: () => number
}

function commitFilesOperation({ catalog, blobs, onStored, now }: CommitParts) {
  /** Returns the stored items: these, or those of the first request with the same key. */
  async function commitRows(
    { bucketId, limits }: UploadBucket,
    items: readonly AddedItem[],
    request: IdempotentRequest | null,
    by: Actor,
  ): Promise<readonly NewItem[]> {
    if (request) return catalog.addItemsOnce(bucketId, items, request, by, limits?.id ?? null)
    if (limits === null) await catalog.addItems(bucketId, items, by)
    else await catalog.addLimitedItems(bucketId, items, limits.id, by)
    return items
  }

  function requestOf(key: RequestKey, arrivals: readonly Arrival[]): IdempotentRequest {
    const at = now()
    const sent = arrivals.reduce((sum, { size }) => sum + size, 0)
    const fingerprint = fingerprintOfArrivals(arrivals)
    return { ...key, fingerprint, bytes: sent, now: at, expiresAt: at + keyLifetime }
  }

  /**
   * Stores the items of one request: all or none, durable when it resolves. If it throws, the files are discarded. Exception:
   * if the outcome of the commit is unknown, blobs stay, because rows may name them.
   */
  return async function commitFiles(
    bucket: UploadBucket,
    arrivals: readonly Arrival[],
    { by, key, onCommit }: CommitOptions,
  ): Promise<Stored> {
    const items = arrivals.map(({ item }) => item)
    const stored = blobsOf(arrivals.map(({ file }) => file))
    const request = key && requestOf(key, arrivals)
    try {
      const first = request && (await catalog.findRepeated(request))
      if (first) {
        await blobs.discard(stored)
        return { items: first, repeated: true }
      }
      if (stored.length > 0) await blobs.commit(stored)
    } catch (error) {
      await blobs.discard(stored)
      throw error
    }
    try {
      onCommit?.()
      const committed = await commitRows(bucket, items, request, by)
      const repeated = committed[0]?.id !== items[0]?.id
      if (repeated) await blobs.discard(stored)
      else if (onStored) for (const item of items) onStored(bucket.bucketId, item)
      return { items: committed, repeated }
    } catch (error) {
      // After any other error, the outcome is unknown: the rows may be committed, so their blobs stay.
      if (error instanceof Fault && notCommitted.has(error.code)) await blobs.discard(stored)
      throw error
    }
  }
}

/** The files that the blob store has received. */
const blobsOf = (files: readonly ReceivedFile[]): ReceivedBlob[] => files.filter((file) => 'handle' in file)

/** Equal for requests with the same bytes, names, types and labels in the same order (docs/interface.md I2). */
function fingerprintOfArrivals(arrivals: readonly Arrival[]): Uint8Array {
  const content = arrivals.map(({ sent: { filename, declaredType, labels = null }, sha256 }) => [
    filename,
    declaredType,
    Buffer.from(sha256).toString('hex'),
    ...(labels === null ? [] : [labels]),
  ])
  return createHash('sha256').update(JSON.stringify(content)).digest()
}

/** Faults after which the rows are certainly not committed. */
const notCommitted: ReadonlySet<string> = new Set([
  'storage-full',
  'catalog-busy',
  'catalog-unavailable',
  'quota-exceeded',
  'token-limit-exceeded',
  'idempotency-key-reused',
  'token-revoked',
])

/** The bucket of an upload, and the limits of its token. */
export type UploadBucket = Pick<Grant, 'bucketId' | 'removesMetadata' | 'limits'>

/** When a new item expires, by the lifetime of its token or its bucket; null for never. */
export const defaultExpiry = (itemDays: number | null, now: number): number | null =>
  itemDays === null ? null : now + itemDays * day

/** When a new item expires, if the client states a time: not after the lifetime of its token (docs/interface.md T9). */
export const statedExpiry = (stated: number, limits: Grant['limits'], now: number): number =>
  Math.min(stated, defaultExpiry(limits?.itemDays ?? null, now) ?? stated)

/** Called with each new item, before the response to its upload. Must return at once. */
export type OnStored = (bucketId: BucketId, item: NewItem) => void

export interface ItemParts {
  readonly blobs: Pick<BlobStore, 'peek'>
  readonly measurePicture: MeasurePicture
  readonly removeMetadata: RemoveMetadata
  readonly readTaken: ReadTaken
}

/**
 * Builds the item of a received file: its name, type and dimensions (docs/interface.md U7, U8). If the bucket removes metadata, `stored`
 * may be another file with its own id; then the caller discards the received file. Throws as RemoveMetadata,
 * Fault `type-refused`, and Fault `overloaded` if the type is needed and cannot be read.
 */
export async function newItem(
  parts: ItemParts,
  file: ReceivedFile,
  { bucketId, removesMetadata, limits }: UploadBucket,
  sent: SentFile,
  given: { readonly id: ItemId; readonly createdAt: number; readonly expiresAt: number | null },
): Promise<{ readonly item: AddedItem; readonly stored: ReceivedFile }> {
  const filename = cleanFilename(sent.filename)
  const path = cleanPath(sent.filename)
  const labels = withFixedLabels(limits, sent.labels)
  // Required where metadata are removed: with another type, the file would be stored with its metadata.
  const isRequired = removesMetadata !== false || (limits !== null && limits.types !== null)
  const sniffing = sniffType(parts.blobs, file, { isRequired })
  // Most small files have their types and dimensions at once. To await them would take 3 % of the time of such a file in a form.
  const sniffed = sniffing && (await sniffing)
  const type = storedType({ sniffed, declared: sent.declaredType, filename, start: file })
  if (limits !== null)
    requireType(limits, { contentType: type.contentType, sniffed: sniffed?.mime ?? null, head: file.head })
  // A RAW file with the structure of TIFF is stored as it is sent.
  const isRaw = removesMetadata && isRawExtension(extensionOf(filename ?? '')) && hasTiffStructure(file.head)
  const keepsTaken = removesMetadata === 'except-taken' && !type.contentType.startsWith('audio/')
  const removal = { contentType: type.contentType, bucketId, keepsTaken }
  const { stored, reading } =
    removesMetadata && !isRaw ? await parts.removeMetadata(file, removal) : { stored: file, reading: null }
  // Of the file as it was sent. Most files are no pictures, and nothing is awaited for them.
  const later = removesMetadata === true || reading ? null : parts.readTaken(file, type.contentType)
  const { taken, isRead } = (later && (await later)) ?? { taken: reading?.taken ?? null, isRead: true }
  const dimensions = isDecoded(type.contentType) ? await parts.measurePicture(stored, bucketId) : null
  const item = {
    id: 'id' in stored && stored !== file ? stored.id : given.id,
    filename,
    ...type,
    size: stored.size,
    sha256: stored.sha256,
    width: dimensions?.width ?? null,
    height: dimensions?.height ?? null,
    createdAt: given.createdAt,
    bytes: 'bytes' in stored ? stored.bytes : null,
    ...(given.expiresAt === null ? {} : { expiresAt: given.expiresAt }),
    ...(path === null ? {} : { path }),
    ...(labels === null ? {} : { labels }),
    ...(taken === null ? { takenRead: isRead } : { takenAt: taken.time, takenOffset: taken.offset }),
  }
  return { item, stored }
}
