import { setTimeout } from 'node:timers/promises'
import { chunkTooLarge, Fault } from '../core/faults.ts'
import type { UploadId } from '../core/ids.ts'
import type { Labels } from '../core/item-labels.ts'
import { maxFileSizeOf, requireFileSize } from '../core/quotas.ts'
import type { Actor } from '../core/token-rules.ts'
import { type BlobStore, PartialUploadLost } from '../storage/blobs/blobs.ts'
import { type ReceivedBlob, type ReceivedFile, received } from '../storage/blobs/received-file.ts'
import type { Catalog } from '../storage/catalog/catalog.ts'
import type { AddedItem, NewItem } from '../storage/catalog/records.ts'
import type { Upload } from '../storage/catalog/uploads.ts'
import type { OnStored } from './commit.ts'
import { type ItemParts, newItem, type UploadBucket } from './new-items.ts'
import { type FileReceiver, resumed } from './received-files.ts'
import { createUploadReservations, type Reserve } from './reservations.ts'
import { type ChunkHeader, checkChunk, uploadUnknown } from './resumable-uploads.ts'
import type { FreeSpace, SpaceClaim } from './space.ts'
import type { UploadLock, UploadLocks } from './upload-locks.ts'

export interface Chunk extends ChunkHeader, Pick<UploadBucket, 'removesMetadata' | 'limits' | 'fileLimits'> {
  readonly source: AsyncIterable<Uint8Array>
  /** Nothing is stored unless the source ends without an error. */
  readonly isAtomic: boolean
  /** Who sends it. The sender of the last chunk has uploaded the item. */
  readonly by: Actor
  /** When the item expires; null or left out for never. */
  readonly expiresAt?: number | null
  /** Of the item; null or left out for none. */
  readonly labels?: Labels | null
  /** As core/focus.ts stores it. */
  readonly focus?: number | null
}

/** How an upload ends. */
interface End {
  readonly expiresAt: number
  readonly by: Actor
  /** Bytes of the upload. */
  readonly length: number
}

interface AppendedUpload {
  readonly upload: Upload
  /** The new item, if this chunk completed the upload. */
  readonly item: NewItem | null
}

interface AppendParts extends Omit<ItemParts, 'blobs'> {
  readonly catalog: Pick<
    Catalog,
    'findUpload' | 'declareLength' | 'moveUpload' | 'finishUpload' | 'removeUpload' | 'bucket' | 'findToken'
  >
  readonly blobs: BlobStore
  readonly newReceiver: () => FileReceiver
  readonly onStored: OnStored | null
  readonly space: Pick<FreeSpace, 'claim'>
  readonly locks: UploadLocks
  /** Bytes. */
  readonly maxFileSize: number
  /** An upload expires this many milliseconds after bytes were last stored. */
  readonly expiry: number
  readonly now: () => number
}

/** The parts with which one upload is changed. */
type Parts = AppendParts & { readonly reserve: Reserve }

/** A chunk whose bytes are being received. */
interface Receiving {
  readonly lock: UploadLock
  readonly receiver: FileReceiver
  /** When the reading of the chunk began. */
  readonly since: number
}

/** A chunk is synced in segments of at most this length. A crash loses at most the segment that is being received. */
const segmentLimit = { bytes: 16 * 1024 * 1024, milliseconds: 2_000 }
const isFull = (bytes: number, milliseconds: number) =>
  bytes >= segmentLimit.bytes || milliseconds >= segmentLimit.milliseconds
const never = () => false

export type AppendUpload = ReturnType<typeof appendUploadOperation>

export function appendUploadOperation(parts: AppendParts) {
  const reserve = createUploadReservations(parts)
  return (id: UploadId, chunk: Chunk) => appendUpload({ ...parts, reserve }, id, chunk)
}

/**
 * Appends a chunk. The offset is raised only after the bytes are synced. If the source fails, the bytes that were received
 * before the failure are stored, unless the chunk is atomic. A chunk that contains a whole small upload is received into
 * memory, and is stored by the commit of its item. The last byte turns the upload into an item before any response reports
 * the upload as complete (docs/interface.md R5, R6). Throws Fault `upload-unknown`, `quota-exceeded`, `storage-full`, the
 * faults of `checkChunk`, and the errors of the source.
 */
async function appendUpload(parts: Parts, id: UploadId, chunk: Chunk): Promise<AppendedUpload> {
  const claim = parts.space.claim(chunk.declaredBytes ?? 0)
  try {
    // The claim is older than the lock: a full disk refuses the chunk without a wait for the lock.
    return await parts.locks.hold(id, (lock) => appendLocked(parts, id, chunk, { lock, claim }))
  } finally {
    claim.release()
  }
}

async function appendLocked(
  parts: Parts,
  id: UploadId,
  chunk: Chunk,
  { lock, claim }: { readonly lock: UploadLock; readonly claim: SpaceClaim },
): Promise<AppendedUpload> {
  const { catalog, maxFileSize } = parts
  // The upload is read under the lock, so that its offset stays as the checks find it.
  const found = await catalog.findUpload(id)
  if (found === null) throw uploadUnknown()
  let upload = found
  try {
    checkChunk(found, chunk, maxFileSize, chunk)
    if (chunk.length != null) upload = await declareLength(parts, found, chunk.length)
    const source = lock.watch(abortable(lock.signal, claiming(claim, chunk.source)))
    // A client that lost the last response declares the length again.
    if (upload.finished) {
      await requireNoBytes(source, lock)
      return { upload, item: null }
    }
    await requireRoom(parts, upload, chunk)
    return await receiveChunk(parts, upload, { ...chunk, source }, lock)
  } catch (error) {
    // What can never be stored, or is lost, is removed at once; all other uploads can be continued.
    if (isRefusal(error, found)) await removeRefused(parts, upload)
    if (!(error instanceof PartialUploadLost)) throw error
    // False if the upload was removed with its bucket, or if another process has finished it.
    if (!(await catalog.removeUpload(id, true))) throw await refusal(parts, upload)
    throw error.cause instanceof Fault ? error.cause : error
  }
}

/** Call it with the lock: a concurrent write that has read the upload without a length could not create the item, and so would be refused its last byte. */
async function declareLength(parts: Parts, upload: Upload, length: number): Promise<Upload> {
  if (upload.length === null && !(await parts.catalog.declareLength(upload.id, length)))
    throw await refusal(parts, upload)
  return { ...upload, length }
}

/** Reads the chunk of a finished upload. Throws Fault `file-too-large` if it has bytes, and the errors of the source. */
async function requireNoBytes(
  source: AsyncIterable<Uint8Array>,
  { signal }: Pick<UploadLock, 'signal'>,
): Promise<void> {
  try {
    for await (const bytes of source) if (bytes.byteLength > 0) throw chunkTooLarge(0)
  } catch (error) {
    throw signal.aborted ? takenOver() : error
  }
}

/** Without a length, the upload has reserved only the bytes that are stored. Throws Fault before others arrive that do not fit. */
async function requireRoom(
  { reserve }: Parts,
  { bucketId, length }: Upload,
  { limits, declaredBytes = 0 }: Chunk,
): Promise<void> {
  if (length !== null) return
  const reservation = reserve({ bucketId, limits })
  try {
    await reservation.hold({ items: 0, bytes: declaredBytes })
  } finally {
    reservation.release()
  }
}

/** Receives a whole small upload into memory, and anything else in segments. */
async function receiveChunk(
  parts: Parts,
  upload: Upload,
  chunk: Chunk,
  lock: UploadLock,
): Promise<AppendedUpload> {
  const { id, length, itemId, offset } = upload
  // An earlier attempt may have renamed the file to its item's name and then failed to commit.
  await parts.blobs.partialUploads.reclaim(id, itemId)
  const receiver = parts.newReceiver()
  const receiving = { lock, receiver, since: parts.now() }
  try {
    if (offset > 0 || length === null || !receiver.reserve(length))
      return await appendSegments(parts, upload, chunk, receiving)
    const small = await readSmallUpload(chunk.source, length, segmentLimit.milliseconds, parts.now)
    if (small.bytes !== null) return await finish(parts, upload, chunk, received(small.bytes))
    // A slow client must not occupy the memory that other requests need.
    receiver.release()
    return await appendSegments(parts, upload, { ...chunk, source: small.rest }, receiving)
  } finally {
    receiver.release()
  }
}

async function appendSegments(
  parts: Parts,
  upload: Upload,
  chunk: Chunk,
  { lock, receiver, since }: Receiving,
): Promise<AppendedUpload> {
  const { blobs, expiry, now } = parts
  const { id, length, itemId } = upload
  const { isAtomic } = chunk
  const end = length ?? maxFileSizeOf(chunk, parts.maxFileSize)
  let current = upload
  // A segment that reaches the end of the upload has all other bytes of the source too, which are refused.
  const isDue = (bytes: number, milliseconds: number) =>
    isFull(bytes, milliseconds) && current.offset + bytes < end
  for await (const segment of splitSource(chunk.source, isAtomic ? never : isDue, now, since)) {
    // The bytes of the segment are stored and synced.
    const { offset } = current
    let { expiresAt } = current
    const { size, failure, isRecorded } = await blobs.partialUploads
      .append(current, {
        ...{ offset, source: segment, limit: end - offset, isAtomic },
        // After the bytes have arrived, which can take long.
        expiresAt() {
          expiresAt = now() + expiry
          return expiresAt
        },
      })
      .catch((error) => {
        // Throws if the end is the largest file of the token.
        if (length === null && hasCode(error, 'file-too-large')) requireFileSize(chunk, end + 1)
        throw error
      })
    const reason = lock.signal.aborted ? takenOver() : failure
    if (failure !== null && isAtomic) throw reason
    // The last byte makes the item. Before it, the offset in the catalog follows the bytes, also if the source has failed.
    if (size === length) return finish(parts, current, chunk, await receiver.complete(id, size, itemId))
    if (isRecorded) current = { ...current, offset: size, expiresAt }
    else if (size > offset) current = await moveOffset(parts, current, size)
    if (failure !== null) throw reason
  }
  return { upload: current, item: null }
}

async function moveOffset(parts: Parts, upload: Upload, offset: number): Promise<Upload> {
  const expiresAt = parts.now() + parts.expiry
  if (!(await parts.catalog.moveUpload(upload.id, upload.offset, offset, expiresAt)))
    throw await refusal(parts, upload)
  return { ...upload, offset, expiresAt }
}

/** Turns the upload into an item. */
async function finish(
  parts: Parts,
  upload: Upload,
  chunk: Chunk,
  file: ReceivedFile,
): Promise<AppendedUpload> {
  const { by, removesMetadata, limits, fileLimits = null, expiresAt: itemExpiry = null } = chunk
  const { labels = null, focus = null } = chunk
  const { expiry, now } = parts
  const bucket = { bucketId: upload.bucketId, removesMetadata, limits, fileLimits }
  const given = { id: upload.itemId, createdAt: now(), expiresAt: itemExpiry }
  const { item, stored } = await newItem(parts, file, bucket, { ...upload, labels, focus }, given)
  // The row of the item and the end of the upload are one transaction.
  const expiresAt = now() + expiry
  const end = { expiresAt, by, length: file.size }
  const isFinished = await ('bytes' in stored
    ? storeBytes(parts, upload, item, end)
    : storeBlob(parts, upload, { ...end, item, blob: stored }))
  if (!isFinished) throw await refusal(parts, upload)
  parts.onStored?.(upload.bucketId, item)
  if (stored !== file) await discardReceived(parts, upload, file)
  return { upload: { ...upload, itemId: item.id, offset: file.size, finished: true, expiresAt }, item }
}

/** If the removal of the partial upload fails, the next start or the expiry of the upload removes it. */
async function storeBytes(
  { catalog, blobs }: Parts,
  { id }: Upload,
  item: AddedItem,
  { expiresAt, by, length }: End,
): Promise<boolean> {
  const isFinished = await catalog.finishUpload(id, item, expiresAt, by, length)
  await blobs.partialUploads.remove(id).catch(() => undefined)
  return isFinished
}

async function storeBlob(
  { catalog, blobs }: Parts,
  { id }: Upload,
  { item, blob, expiresAt, by, length }: End & { readonly item: AddedItem; readonly blob: ReceivedBlob },
): Promise<boolean> {
  await blobs.commit([blob])
  const isFinished = await catalog.finishUpload(id, item, expiresAt, by, length)
  if (!isFinished) await blobs.discard([blob])
  return isFinished
}

/** The bytes as they were sent, of which a copy without metadata is stored. If this fails, a sweep or the next start removes them. */
async function discardReceived({ blobs }: Parts, { id, itemId }: Upload, file: ReceivedFile): Promise<void> {
  if ('bytes' in file) return
  await blobs.partialUploads.remove(id).catch(() => undefined)
  await blobs.remove(itemId).catch(() => undefined)
}

/** A file that cannot be stored in this bucket: its bytes are not kept. */
async function removeRefused({ catalog, blobs }: Parts, { id, itemId }: Upload): Promise<void> {
  if (!(await catalog.removeUpload(id, true))) return
  await blobs.partialUploads.remove(id).catch(() => undefined)
  await blobs.remove(itemId).catch(() => undefined)
}

/** Why a change of the upload was refused: another process has changed or finished it, or it is removed. */
async function refusal({ catalog }: Parts, { id, offset, length }: Upload): Promise<Fault> {
  const found = await catalog.findUpload(id)
  const isChanged = found && (found.finished || found.offset !== offset || found.length !== length)
  return isChanged ? takenOver() : uploadUnknown()
}

/** Faults of files that cannot be stored in the bucket, or not with the token. */
const refusals: ReadonlySet<string> = new Set(['file-unreadable', 'type-refused', 'file-refused'])

const hasCode = (error: unknown, code: Fault['code']): boolean =>
  error instanceof Fault && error.code === code

/**
 * Whether the file cannot be stored: for its content, or because a file whose length was unknown exceeds the limits of the token. With a known
 * length, the file is within them, and only the chunk is refused.
 */
const isRefusal = (error: unknown, { length }: Upload): boolean =>
  error instanceof Fault &&
  (refusals.has(error.code) ||
    (length === null &&
      (error.code === 'token-limit-exceeded' ||
        error.parameters.some(({ parameter }) => parameter === 'max_file_size'))))

const takenOver = () =>
  new Fault('upload-offset-conflict', 'Another request has taken over the upload; send HEAD for its offset.')

/**
 * Reads a whole upload of `length` bytes into memory. `bytes` is null if the source has other bytes, fails, or takes longer than
 * `maxDuration` milliseconds: then `rest` has all that it would have had.
 */
async function readSmallUpload(
  source: AsyncIterable<Uint8Array>,
  length: number,
  maxDuration: number,
  now: () => number,
): Promise<
  | { readonly bytes: Uint8Array<ArrayBuffer> }
  | { readonly bytes: null; readonly rest: AsyncIterable<Uint8Array> }
> {
  const deadline = now() + maxDuration
  const timer = new AbortController()
  // A client that sends nothing must not keep the memory either.
  const timeout = setTimeout(maxDuration, null, { ref: false, signal: timer.signal }).catch(() => null)
  const buffers = source[Symbol.asyncIterator]()
  const bytes = new Uint8Array(length)
  let size = 0
  const rest = (next: readonly Uint8Array[], others: AsyncIterator<Uint8Array>) => ({
    bytes: null,
    rest: resumed([bytes.subarray(0, size), ...next], others),
  })
  try {
    for (;;) {
      const next = buffers.next()
      const result = await Promise.race([next, timeout])
      if (result === null) return rest([], startingWith(next, buffers))
      const { done, value } = result
      if (done) return size === length ? { bytes } : rest([], buffers)
      if (size + value.byteLength > length || now() >= deadline) return rest([value], buffers)
      bytes.set(value, size)
      size += value.byteLength
    }
  } catch (error) {
    return rest([], { next: () => Promise.reject(error) })
  } finally {
    timer.abort()
  }
}

/** The iterator, whose next result has been requested already. */
function startingWith<T>(next: Promise<IteratorResult<T>>, others: AsyncIterator<T>): AsyncIterator<T> {
  let isFirst = true
  return {
    next() {
      if (!isFirst) return others.next()
      isFirst = false
      return next
    },
    return: async () => {
      // It would wait for the result that was requested.
      others.return?.().catch(() => undefined)
      return { done: true, value: undefined }
    },
  }
}

/**
 * Splits a source into segments. A segment ends after the first buffer for which `isFull` is true, given the segment's
 * bytes and milliseconds so far; the first one began at `since`. Each segment must be read to its end before the next; an empty source has one.
 */
async function* splitSource(
  source: AsyncIterable<Uint8Array>,
  isFull: (bytes: number, milliseconds: number) => boolean,
  now: () => number,
  since = now(),
): AsyncGenerator<AsyncIterable<Uint8Array>, void, void> {
  const buffers = source[Symbol.asyncIterator]()
  let ended = false
  let start = since

  async function* segment(): AsyncGenerator<Uint8Array, void, void> {
    for (let bytes = 0; bytes === 0 || !isFull(bytes, now() - start); ) {
      const { done, value } = await buffers.next()
      if (done) {
        ended = true
        return
      }
      bytes += value.byteLength
      yield value
    }
  }

  try {
    do {
      yield segment()
      start = now()
    } while (!ended)
  } finally {
    closeSource(buffers)
  }
}

/** The source, whose bytes are subtracted from the claim. Throws Fault `storage-full`. */
async function* claiming(
  claim: SpaceClaim,
  source: AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array, void, void> {
  for await (const chunk of source) {
    claim.arrived(chunk.byteLength)
    yield chunk
  }
}

/** The source, which throws the signal's reason once the signal is aborted, also while it waits for bytes. */
async function* abortable(
  signal: AbortSignal,
  source: AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array, void, void> {
  const buffers = source[Symbol.asyncIterator]()
  try {
    for (;;) {
      const { done, value } = await orAbort(signal, buffers.next())
      if (done) return
      yield value
    }
  } finally {
    closeSource(buffers)
  }
}

/** Does not wait: `return` of a generator resolves only after its pending `next`, which may never resolve. */
function closeSource(buffers: AsyncIterator<unknown>): void {
  buffers.return?.().catch(() => undefined)
}

/** Promise.race, but removes its listener: the signal outlives many promises. */
function orAbort<T>(signal: AbortSignal, promise: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason)
    if (signal.aborted) abort()
    signal.addEventListener('abort', abort)
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort))
  })
}
