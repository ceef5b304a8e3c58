import type { BlobStore } from '../../blobs/blobs.ts'
import { PartialUploadLost } from '../../blobs/partial-uploads.ts'
import type { ReceivedBlob } from '../../blobs/received-blob.ts'
import type { Catalog } from '../../catalog/catalog.ts'
import type { AddedItem, NewItem } from '../../catalog/records.ts'
import type { Upload } from '../../catalog/uploads.ts'
import type { Actor } from '../../core/actor.ts'
import { Fault } from '../../core/fault.ts'
import type { UploadId } from '../../core/upload-id.ts'
import { type ItemParts, newItem, type OnStored, type UploadBucket } from '../new-item.ts'
import { type FileReceiver, type ReceivedFile, received } from '../receive-files.ts'
import { type ChunkHeader, checkChunk } from './check-chunk.ts'
import { uploadUnknown } from './find-upload.ts'
import { readSmallUpload } from './read-small-upload.ts'
import { abortable, splitSource } from './split-source.ts'
import type { UploadLock, UploadLocks } from './upload-locks.ts'

export interface Chunk extends ChunkHeader, Pick<UploadBucket, 'removesMetadata'> {
  readonly source: AsyncIterable<Uint8Array>
  /** Nothing is stored unless the source ends without an error. */
  readonly isAtomic: boolean
  /** Who sends it. The sender of the last chunk has uploaded the item. */
  readonly by: Actor
  /** When the item expires; null or left out for never. */
  readonly expiresAt?: number | null
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

export type AppendUpload = ReturnType<typeof appendUploadOperation>

/** A chunk is synced in segments of at most this length. A crash loses at most the segment that is being received. */
const segmentLimit = { bytes: 16 * 1024 * 1024, milliseconds: 2_000 }
const isFull = (bytes: number, milliseconds: number) =>
  bytes >= segmentLimit.bytes || milliseconds >= segmentLimit.milliseconds
const never = () => false

/**
 * Appends a chunk. The offset is raised only after the bytes are synced. If the source fails, the bytes that were received
 * before the failure are stored, unless the chunk is atomic. A chunk that contains a whole small upload is received into
 * memory, and is stored by the commit of its item. The last byte turns the upload into an item before any response reports
 * the upload as complete (docs/interface.md R5, R6). Throws Fault `upload-unknown`, `quota-exceeded`, `storage-full`, the
 * faults of `checkChunk`, and the errors of the source.
 */
export function appendUploadOperation(
  parts: Omit<ItemParts, 'blobs'> & {
    readonly catalog: Pick<
      Catalog,
      'upload' | 'declareLength' | 'moveUpload' | 'finishUpload' | 'removeUpload'
    >
    readonly blobs: BlobStore
    readonly newReceiver: () => FileReceiver
    readonly onStored: OnStored
    readonly locks: UploadLocks
    /** Bytes. */
    readonly maxFileSize: number
    /** An upload expires this many milliseconds after bytes were last stored. */
    readonly expiry: number
    readonly now: () => number
  },
) {
  const { catalog, blobs, locks, maxFileSize, expiry, now } = parts

  async function append(upload: Upload, chunk: Chunk, lock: UploadLock): Promise<AppendedUpload> {
    const { id, length, itemId } = upload
    // An earlier attempt may have renamed the file to its item's name and then failed to commit.
    await blobs.partialUploads.reclaim(id, itemId)
    const receiver = parts.newReceiver()
    const since = now()
    try {
      const source = lock.watch(abortable(lock.signal, chunk.source))
      if (upload.offset > 0 || length === null || !receiver.reserve(length))
        return await appendSegments(upload, { ...chunk, source }, lock, receiver, since)
      const small = await readSmallUpload(source, length, segmentLimit.milliseconds, now)
      if (small.bytes !== null) return await finish(upload, chunk, received(small.bytes))
      // A slow client must not occupy the memory that other requests need.
      receiver.release()
      return await appendSegments(upload, { ...chunk, source: small.rest }, lock, receiver, since)
    } finally {
      receiver.release()
    }
  }

  async function appendSegments(
    upload: Upload,
    chunk: Chunk,
    lock: UploadLock,
    receiver: FileReceiver,
    /** The time at which the reading of the chunk began. */
    since: number,
  ): Promise<AppendedUpload> {
    const { id, length, itemId } = upload
    const { isAtomic } = chunk
    const end = length ?? maxFileSize
    let current = upload
    for await (const segment of splitSource(chunk.source, isAtomic ? never : isFull, now, since)) {
      const { offset } = current
      const expiresAt = now() + expiry
      const { size, failure, isRecorded } = await blobs.partialUploads.append(current, {
        ...{ offset, source: segment, limit: end - offset, isAtomic, expiresAt },
      })
      const reason = lock.signal.aborted ? takenOver() : failure
      if (failure !== null && isAtomic) throw reason
      if (size === length) return finish(current, chunk, await receiver.complete(id, size, itemId))
      if (isRecorded) current = { ...current, offset: size, expiresAt }
      else if (size > offset) current = await moveOffset(current, size)
      if (failure !== null) throw reason
    }
    return { upload: current, item: null }
  }

  async function moveOffset(upload: Upload, offset: number): Promise<Upload> {
    const expiresAt = now() + expiry
    if (!(await catalog.moveUpload(upload.id, upload.offset, offset, expiresAt))) throw await refusal(upload)
    return { ...upload, offset, expiresAt }
  }

  async function finish(
    upload: Upload,
    { by, removesMetadata, expiresAt: itemExpiry = null }: Chunk,
    file: ReceivedFile,
  ): Promise<AppendedUpload> {
    const bucket = { bucketId: upload.bucketId, removesMetadata }
    const given = { ...upload, id: upload.itemId, createdAt: now(), expiresAt: itemExpiry }
    const { item, stored } = await newItem(parts, file, bucket, given)
    const expiresAt = now() + expiry
    const end = { expiresAt, by, length: file.size }
    const isFinished = await ('bytes' in stored
      ? storeBytes(upload, item, end)
      : storeBlob(upload, item, stored, end))
    if (!isFinished) throw await refusal(upload)
    parts.onStored(upload.bucketId, item)
    if (stored !== file) await discardReceived(upload, file)
    return { upload: { ...upload, itemId: item.id, offset: file.size, finished: true, expiresAt }, item }
  }

  /** The bytes as they were sent, of which a copy without metadata is stored. If this fails, a sweep or the next start removes them. */
  async function discardReceived({ id, itemId }: Upload, file: ReceivedFile): Promise<void> {
    if ('bytes' in file) return
    await blobs.partialUploads.remove(id).catch(() => undefined)
    await blobs.remove(itemId).catch(() => undefined)
  }

  /** If the removal of the partial upload fails, the next start or the expiry of the upload removes it. */
  async function storeBytes(
    { id }: Upload,
    item: AddedItem,
    { expiresAt, by, length }: End,
  ): Promise<boolean> {
    const isFinished = await catalog.finishUpload(id, item, expiresAt, by, length)
    await blobs.partialUploads.remove(id).catch(() => undefined)
    return isFinished
  }

  async function storeBlob(
    { id }: Upload,
    item: AddedItem,
    blob: ReceivedBlob,
    { expiresAt, by, length }: End,
  ): Promise<boolean> {
    await blobs.commit([blob])
    const isFinished = await catalog.finishUpload(id, item, expiresAt, by, length)
    if (!isFinished) await blobs.discard([blob])
    return isFinished
  }

  /** A file that cannot be stored in this bucket: its bytes are not kept. */
  async function removeRefused({ id, itemId }: Upload): Promise<void> {
    if (!(await catalog.removeUpload(id, true))) return
    await blobs.partialUploads.remove(id).catch(() => undefined)
    await blobs.remove(itemId).catch(() => undefined)
  }

  /** Why a change of the upload was refused: another process has changed or finished it, or it is removed. */
  async function refusal({ id, offset, length }: Upload): Promise<Fault> {
    const found = await catalog.upload(id)
    const isChanged = found && (found.finished || found.offset !== offset || found.length !== length)
    return isChanged ? takenOver() : uploadUnknown()
  }

  /** Call it with the lock: a concurrent write that has read the upload without a length could store the last byte without creating the item. */
  async function declareLength(upload: Upload, length: number): Promise<Upload> {
    if (upload.length === null && !(await catalog.declareLength(upload.id, length)))
      throw await refusal(upload)
    return { ...upload, length }
  }

  return function appendUpload(id: UploadId, chunk: Chunk): Promise<AppendedUpload> {
    return locks.hold(id, async (lock) => {
      const found = await catalog.upload(id)
      if (found === null) throw uploadUnknown()
      checkChunk(found, chunk, maxFileSize)
      const { length = null } = chunk
      const upload = length === null ? found : await declareLength(found, length)
      if (upload.finished) return { upload, item: null }
      try {
        return await append(upload, chunk, lock)
      } catch (error) {
        if (error instanceof Fault && error.code === 'file-unreadable') await removeRefused(upload)
        if (!(error instanceof PartialUploadLost)) throw error
        // False if the upload was removed with its bucket, or if another process has finished it.
        if (!(await catalog.removeUpload(id, true))) throw await refusal(upload)
        throw error.cause instanceof Fault ? error.cause : error
      }
    })
  }
}

const takenOver = () =>
  new Fault('upload-offset-conflict', 'Another request has taken over the upload; send HEAD for its offset.')
