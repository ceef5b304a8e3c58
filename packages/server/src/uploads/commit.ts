import { createHash } from 'node:crypto'
import { Fault, fileTooLarge } from '../core/faults.ts'
import { createItemIds, type ItemId } from '../core/ids.ts'
import { type Amount, maxFileSizeOf, requireFileSize } from '../core/quotas.ts'
import type { Actor } from '../core/token-rules.ts'
import type { BlobStore } from '../storage/blobs/blobs.ts'
import type { ReceivedBlob, ReceivedFile } from '../storage/blobs/received-file.ts'
import type { Catalog } from '../storage/catalog/catalog.ts'
import type { AddedItem, BucketId, IdempotentRequest, NewItem } from '../storage/catalog/records.ts'
import { type ItemParts, newItem, requireKeptType, type SentFile, type UploadBucket } from './new-items.ts'
import { type FileReceiver, receivedBytes } from './received-files.ts'
import {
  createKeyedReservations,
  createUploadReservations,
  noReservation,
  ReplacingReservation,
  type RequestKey,
  type Reservation,
  type Reserve,
} from './reservations.ts'
import type { FreeSpace, SpaceClaim } from './space.ts'

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
  /** Equal for requests with the key that are repetitions; null or left out for that of the files. 32 bytes. */
  readonly fingerprint?: Uint8Array | null
  /** When the items expire; null or left out for never. */
  readonly expiresAt?: number | null
  /** The total size of the files in bytes, if known. */
  readonly declaredBytes?: number
  /** The size of the only file in bytes, if known. */
  readonly atMost?: number | null
}

interface StoreParts extends Omit<ItemParts, 'blobs'>, CommitParts {
  readonly catalog: CommitParts['catalog'] & Pick<Catalog, 'bucket' | 'findToken' | 'findKeyed'>
  readonly blobs: BlobStore
  readonly newReceiver: () => FileReceiver
  readonly space: Pick<FreeSpace, 'claim'>
  /** Bytes. */
  readonly maxFileSize: number
}

export type StoreOperations = ReturnType<typeof storeOperations>

export function storeOperations(parts: StoreParts) {
  const reserve = createUploadReservations(parts)
  const store: Store = {
    ...parts,
    reserve,
    reserveKeyed: createKeyedReservations({ ...parts, reserve }),
    newId: createItemIds(parts.now),
  }
  return {
    reserve,
    storeItems: (bucket: UploadBucket, files: IncomingFiles, options: StoreOptions) =>
      storeItems(store, bucket, files, options),
    storeSmallFile: (bucket: UploadBucket, bytes: Uint8Array, sent: SentFile, options: SmallFileOptions) =>
      storeSmallFile(store, bucket, { sent, body: bytes }, options),
    findRepeated: (
      bucket: UploadBucket,
      request: Pick<IdempotentRequest, 'fingerprint'> & { key: RequestKey },
    ) => findRepeated(store, bucket, request),
    storeFile: <T>(bucket: UploadBucket, file: IncomingFile, options: FileOptions<T>) =>
      storeFile(store, bucket, file, options),
  }
}

/** What all uploads share. */
interface Store extends StoreParts {
  readonly reserve: Reserve
  readonly reserveKeyed: ReturnType<typeof createKeyedReservations>
  readonly newId: () => ItemId
}

/**
 * Stores the files in the given order: all of them or none (docs/interface.md U2), durable when it resolves. Reads each file
 * to its end before it takes the next one. Without files, it stores nothing.
 */
async function storeItems(
  store: Store,
  bucket: UploadBucket,
  files: IncomingFiles,
  options: StoreOptions,
): Promise<Stored> {
  const { by, key = null, fingerprint = null, declaredBytes = 0, atMost } = options
  // The space of the disk, the quota and memory are taken before bytes are read, and given back in any case.
  const claim = store.space.claim(atMost ?? declaredBytes)
  const reservation = key === null ? store.reserve(bucket) : store.reserveKeyed(key, bucket)
  const receiver = store.newReceiver()
  try {
    const arrivals = await new Reception(store, bucket, { receiver, reservation, claim }, options).receive(
      files,
    )
    if (arrivals.length === 0) return { items: [], repeated: false }
    return await commitFiles(store, bucket, arrivals, { by, key, fingerprint, reservation })
  } finally {
    receiver.release()
    reservation.release()
    claim.release()
  }
}

interface FileOptions<T> extends Required<Pick<StoreOptions, 'by' | 'atMost' | 'expiresAt'>> {
  /** Whether its quota is reserved, by an upload that is complete. */
  readonly isReserved?: boolean
  /** What the removal of an item that this one replaces frees. Called if the file does not fit into the quota without it. */
  readonly readFreed?: () => Promise<Amount>
  /** Called with the SHA-256 of the bytes as they were sent; throws if the file is not to be stored. */
  readonly check?: (sha256: Uint8Array) => void
  /** Adds the row of the item, and what belongs to it, in one transaction, or nothing. */
  readonly add: (item: AddedItem) => Promise<{ readonly isAdded: boolean; readonly result: T }>
}

/** Stores one file as storeItems, whose row `add` adds. Returns the result of `add`; discards the bytes if it has added nothing. */
async function storeFile<T>(
  store: Store,
  bucket: UploadBucket,
  file: IncomingFile,
  { isReserved = false, readFreed, check, add, ...options }: FileOptions<T>,
): Promise<T> {
  const size = options.atMost ?? 0
  requireKeptType(bucket, file.sent)
  if (size > store.maxFileSize) throw fileTooLarge(store.maxFileSize)
  requireFileSize(bucket, size)
  const claim = store.space.claim(size)
  const own = isReserved ? noReservation : store.reserve(bucket)
  const reservation = readFreed ? new ReplacingReservation(own, readFreed) : own
  const receiver = store.newReceiver()
  try {
    const taken = { receiver, reservation, claim }
    const receiving = { ...options, declaredBytes: size }
    const [arrival] = await new Reception(store, bucket, taken, receiving).receive([[file]])
    if (arrival === undefined) throw new TypeError('a file was received without a result')
    const received = blobsOf([arrival.file])
    try {
      check?.(arrival.sha256)
    } catch (error) {
      await store.blobs.discard(received)
      throw error
    }
    return await commitBlobs(store.blobs, received, async () => {
      reservation.beginCommit()
      const { isAdded, result } = await add(arrival.item)
      if (isAdded) store.onStored?.(bucket.bucketId, arrival.item)
      else await store.blobs.discard(received)
      return result
    })
  } finally {
    receiver.release()
    reservation.release()
    claim.release()
  }
}

/** What one request has taken for its files. */
interface Taken {
  readonly receiver: FileReceiver
  readonly reservation: Reservation
  readonly claim: SpaceClaim
}

/** Receives the files of one request. */
class Reception {
  readonly #store: Store
  readonly #bucket: UploadBucket
  readonly #taken: Taken
  readonly #options: StoreOptions
  /** Bytes of the largest file. */
  readonly #largest: number
  readonly #arrivals: Arrival[] = []
  /** Files that are discarded if a later one fails. */
  readonly #received: ReceivedFile[] = []
  /** Bytes that have arrived. */
  #bytes = 0

  constructor(store: Store, bucket: UploadBucket, taken: Taken, options: StoreOptions) {
    this.#store = store
    this.#bucket = bucket
    this.#taken = taken
    this.#options = options
    this.#largest = maxFileSizeOf(bucket, store.maxFileSize)
  }

  /** Discards all files if one of them fails. */
  async receive(files: IncomingFiles): Promise<readonly Arrival[]> {
    const { reservation, claim } = this.#taken
    try {
      await reservation.hold({ items: 1, bytes: this.#options.declaredBytes ?? 0 })
      for await (const group of files) {
        // Of a group that has arrived, all files are reserved at once, before the first is received.
        const arrived = arrivedBytes(group)
        if (arrived > 0) claim.arrived(arrived)
        await reservation.hold({
          items: this.#arrivals.length + group.length,
          bytes: this.#bytes + arrived,
        })
        for (const file of group) await this.#receiveOne(file)
      }
    } catch (error) {
      await this.#store.blobs.discard(blobsOf(this.#received))
      throw error
    }
    return this.#arrivals
  }

  async #receiveOne({ sent, body }: IncomingFile): Promise<void> {
    const { newId, now, blobs } = this.#store
    const id = newId()
    const file = await this.#receiveBytes(id, body)
    this.#received.push(file)
    const given = { id, createdAt: now(), expiresAt: this.#options.expiresAt ?? null }
    const { item, stored } = await newItem(this.#store, file, this.#bucket, sent, given)
    this.#arrivals.push({ sent, sha256: file.sha256, size: file.size, file: stored, item })
    if (stored === file) return
    // A copy without metadata is stored instead.
    this.#received.push(stored)
    await blobs.discard(blobsOf([file]))
  }

  async #receiveBytes(id: ItemId, body: IncomingFile['body']): Promise<ReceivedFile> {
    const { receiver } = this.#taken
    const { atMost = null } = this.#options
    if (!(body instanceof Uint8Array))
      return receiver.receive(id, this.#holding(body, false), this.#largest, atMost)
    requireFileSize(this.#bucket, body.byteLength)
    const inMemory = receiver.receiveWhole(body, this.#largest)
    if (inMemory === null) return receiver.receive(id, this.#holding([body], true), this.#largest, atMost)
    this.#bytes += inMemory.size
    return inMemory
  }

  /** The source, whose bytes are reserved and, unless they are claimed, claimed as they arrive. */
  async *#holding(source: AsyncIterable<Uint8Array> | Iterable<Uint8Array>, isClaimed: boolean) {
    const { reservation, claim } = this.#taken
    let size = 0
    for await (const chunk of source) {
      if (!isClaimed) claim.arrived(chunk.byteLength)
      size += chunk.byteLength
      requireFileSize(this.#bucket, size)
      this.#bytes += chunk.byteLength
      await reservation.hold({ items: this.#arrivals.length + 1, bytes: this.#bytes })
      yield chunk
    }
  }
}

type SmallFileOptions = Required<Pick<StoreOptions, 'by' | 'key' | 'expiresAt'>>

/**
 * Stores a small file that has arrived completely with less work than storeItems: nothing is streamed, and only the commit checks the quota.
 * Passes it to storeItems if it is not small, or if the memory for small files is in use. Takes over the memory of the bytes.
 */
async function storeSmallFile(
  store: Store,
  bucket: UploadBucket,
  small: IncomingFile & { readonly body: Uint8Array },
  { by, key, expiresAt }: SmallFileOptions,
): Promise<Stored> {
  const { sent, body } = small
  const size = body.byteLength
  requireFileSize(bucket, size)
  const receiver = store.newReceiver()
  if (!receiver.reserve(size)) {
    const options = { by, key, expiresAt, declaredBytes: size, atMost: size }
    return storeItems(store, bucket, [[small]], options)
  }
  try {
    const claim = store.space.claim(size)
    try {
      const file = receivedBytes(body)
      const given = { id: store.newId(), createdAt: store.now(), expiresAt }
      const { item, stored } = await newItem(store, file, bucket, sent, given)
      const arrival = { sent, sha256: file.sha256, size, file: stored, item }
      const commit = { by, key, fingerprint: null, reservation: null }
      return await commitFiles(store, bucket, [arrival], commit)
    } finally {
      claim.release()
    }
  } finally {
    receiver.release()
  }
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
  /** As in StoreOptions. */
  readonly fingerprint: Uint8Array | null
  /** Settled before the commit of the rows; null where only the commit checks the quota. */
  readonly reservation: Reservation | null
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

/**
 * Stores the items of one request: all or none, durable when it resolves. If it throws, the files are discarded. Exception:
 * if the outcome of the commit is unknown, blobs stay, because rows may name them.
 */
async function commitFiles(
  parts: CommitParts,
  bucket: UploadBucket,
  arrivals: readonly Arrival[],
  { by, key, fingerprint, reservation }: CommitOptions,
): Promise<Stored> {
  const { catalog, blobs, onStored } = parts
  const items = arrivals.map(({ item }) => item)
  const stored = blobsOf(arrivals.map(({ file }) => file))
  const request = key && requestOf(key, fingerprint, arrivals, parts.now())
  // First the bytes, unless an earlier request with the key has stored them.
  try {
    const first = request && (await catalog.findRepeated(bucket.bucketId, request))
    if (first) {
      await blobs.discard(stored)
      return { items: first, repeated: true }
    }
  } catch (error) {
    await blobs.discard(stored)
    throw error
  }
  return commitBlobs(blobs, stored, async () => {
    reservation?.beginCommit()
    const committed = await commitRows(catalog, bucket, items, { request, by })
    const repeated = committed[0]?.id !== items[0]?.id
    if (repeated) await blobs.discard(stored)
    else if (onStored) for (const item of items) onStored(bucket.bucketId, item)
    return { items: committed, repeated }
  })
}

/**
 * Commits received bytes, then calls `addRows`, which adds the rows that name them. If it throws, the bytes are discarded, unless the outcome of the commit of
 * the rows is unknown.
 */
export async function commitBlobs<T>(
  blobs: CommitParts['blobs'],
  received: readonly ReceivedBlob[],
  addRows: () => Promise<T>,
): Promise<T> {
  try {
    if (received.length > 0) await blobs.commit(received)
  } catch (error) {
    await blobs.discard(received)
    throw error
  }
  try {
    return await addRows()
  } catch (error) {
    // After any other error, the rows may be committed, so their blobs stay.
    if (error instanceof Fault && notCommitted.has(error.code)) await blobs.discard(received)
    throw error
  }
}

/** Returns the stored items: these, or those of the first request with the same key. */
async function commitRows(
  catalog: CommitParts['catalog'],
  { bucketId, limits }: UploadBucket,
  items: readonly AddedItem[],
  { request, by }: { readonly request: IdempotentRequest | null; readonly by: Actor },
): Promise<readonly NewItem[]> {
  if (request) return catalog.addItemsOnce(bucketId, items, request, by, limits?.id ?? null)
  if (limits === null) await catalog.addItems(bucketId, items, by)
  else await catalog.addLimitedItems(bucketId, items, limits.id, by)
  return items
}

function requestOf(
  key: RequestKey,
  fingerprint: Uint8Array | null,
  arrivals: readonly Arrival[],
  now: number,
): IdempotentRequest {
  const bytes = arrivals.reduce((sum, { size }) => sum + size, 0)
  return {
    ...{ ...key, bytes, now, expiresAt: now + keyLifetime },
    fingerprint: fingerprint ?? fingerprintOfArrivals(arrivals),
  }
}

/** The items of the first request with the key, before anything of this one has arrived; null if the key is new. Throws Fault `idempotency-key-reused`. */
function findRepeated(
  { catalog, now }: Pick<Store, 'catalog' | 'now'>,
  { bucketId }: UploadBucket,
  { key, fingerprint }: Pick<IdempotentRequest, 'fingerprint'> & { readonly key: RequestKey },
): Promise<readonly NewItem[] | null> {
  const time = now()
  return catalog.findRepeated(bucketId, { ...key, fingerprint, now: time, expiresAt: time + keyLifetime })
}

/** The files that the blob store has received. */
const blobsOf = (files: readonly ReceivedFile[]): ReceivedBlob[] => files.filter((file) => 'handle' in file)

/** Equal for requests with the same bytes, names, types, labels and focus in the same order (docs/interface.md I2). */
function fingerprintOfArrivals(arrivals: readonly Arrival[]): Uint8Array {
  const content = arrivals.map(
    ({ sent: { filename, declaredType, labels = null, focus = null }, sha256 }) => [
      filename,
      declaredType,
      Buffer.from(sha256).toString('hex'),
      ...(labels === null ? [] : [labels]),
      ...(focus === null ? [] : [focus]),
    ],
  )
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
  'precondition-failed',
  'upload-unknown',
  'token-revoked',
  'bucket-unknown',
])

/** Called with each new item, before the response to its upload. Must return at once. */
export type OnStored = (bucketId: BucketId, item: NewItem) => void
