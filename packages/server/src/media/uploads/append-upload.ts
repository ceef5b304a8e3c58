import { type BlobStore, PartialUploadLost } from '../../blobs/blobs.ts'
import type { Catalog, NewMedia, Upload } from '../../catalog/catalog.ts'
import { Fault } from '../../core/fault.ts'
import type { UploadId } from '../../core/upload-id.ts'
import { newItem } from '../new-item.ts'
import type { MeasurePicture } from '../pictures/measure-picture.ts'
import { uploadUnknown } from './find-upload.ts'
import { runsOf, until } from './source-runs.ts'
import type { Turn, UploadTurns } from './upload-turns.ts'

interface Piece {
  readonly offset: number
  readonly source: AsyncIterable<Uint8Array>
  /** Nothing of it counts unless the source ends well. */
  readonly whole: boolean
  /** The length of the whole file, where this request declares it. */
  readonly length?: number | null
  /** Bytes that the source will have, where that is known. */
  readonly declaredBytes?: number
}

interface AppendedUpload {
  readonly upload: Upload
  /** The item, when this piece was the last one. */
  readonly item: NewMedia | null
}

export type AppendUpload = (id: UploadId, piece: Piece) => Promise<AppendedUpload>

/** How much may have to be sent again after a crash of the service: bytes, and the milliseconds in which they came. */
const checkpoint = { size: 16 * 1024 * 1024, time: 2_000 }
const isLong = (size: number, time: number) => size >= checkpoint.size || time >= checkpoint.time
const never = () => false

/**
 * Writes a piece behind what has arrived. The offset moves when its bytes are synced, and what arrived before a source
 * failed counts. With the last byte the upload becomes an item, before anything tells that it is complete
 * (docs/interface.md R5, R6). Throws Fault `upload-unknown`, `upload-offset-conflict`, `upload-malformed`
 * where another length was declared, `file-too-large`, `quota-exceeded`, `storage-full`, and what the source throws.
 */
export function createAppendUpload(parts: {
  readonly catalog: Pick<Catalog, 'upload' | 'declareLength' | 'moveUpload' | 'finishUpload' | 'removeUpload'>
  readonly blobs: BlobStore
  readonly measurePicture: MeasurePicture
  readonly turns: UploadTurns
  /** Bytes. */
  readonly maxFileSize: number
  /** Milliseconds for which an upload is kept since its last byte. */
  readonly expiry: number
  readonly now: () => number
}): AppendUpload {
  const { catalog, blobs, turns, maxFileSize, expiry, now } = parts

  async function append(upload: Upload, piece: Piece, turn: Turn): Promise<AppendedUpload> {
    const { id, length, mediaId } = upload
    const end = length ?? maxFileSize
    let offset = upload.offset
    // An earlier attempt to finish may have put it in place and failed to commit.
    await blobs.partialUploads.reclaim(id, mediaId)
    const source = turn.watch(until(turn.signal, piece.source))
    for await (const run of runsOf(source, piece.whole ? never : isLong, now)) {
      const limit = end - offset
      const { size, failure } = await blobs.partialUploads.append(id, { offset, source: run, limit })
      const reason = turn.signal.aborted ? takenOver() : failure
      if (failure !== null && piece.whole) throw reason
      if (size === length) return finish(upload, size)
      if (size > offset && !(await catalog.moveUpload(id, offset, size, now() + expiry)))
        throw uploadUnknown()
      offset = size
      if (failure !== null) throw reason
    }
    return { upload: { ...upload, offset, expiresAt: now() + expiry }, item: null }
  }

  async function finish(upload: Upload, size: number): Promise<AppendedUpload> {
    const { id, mediaId } = upload
    const blob = await blobs.partialUploads.complete(id, size)
    const item = await newItem(parts, blob, { ...upload, id: mediaId, createdAt: now() })
    await blobs.commit(blob, mediaId)
    const expiresAt = now() + expiry
    if (!(await catalog.finishUpload(id, item, expiresAt))) {
      await blobs.remove(mediaId)
      throw uploadUnknown()
    }
    blobs.markCommitted([mediaId])
    return { upload: { ...upload, offset: size, finished: true, expiresAt }, item }
  }

  /** In the turn of the request, so that no other request writes to an upload of which it does not know the length. */
  async function declare(upload: Upload, length: number): Promise<Upload> {
    if (upload.length !== null && upload.length !== length)
      throw new Fault('upload-malformed', 'Upload-Length was declared already, with another value.')
    if (upload.length === null && !(await catalog.declareLength(upload.id, length))) throw uploadUnknown()
    return { ...upload, length }
  }

  return (id, piece) =>
    turns.take(id, async (turn) => {
      const found = await catalog.upload(id)
      if (found === null) throw uploadUnknown()
      if (found.offset !== piece.offset)
        throw new Fault('upload-offset-conflict', `The upload is at offset ${found.offset}.`)
      const { length = null } = piece
      const upload = length === null ? found : await declare(found, length)
      if (upload.finished) return { upload, item: null }
      try {
        return await append(upload, piece, turn)
      } catch (error) {
        if (!(error instanceof PartialUploadLost)) throw error
        // Gone with its bucket, perhaps.
        if (!(await catalog.removeUpload(id))) throw uploadUnknown()
        throw error.cause instanceof Fault ? error.cause : error
      }
    })
}

const takenOver = () =>
  new Fault('upload-offset-conflict', 'Another request has taken over; ask for the offset again.')
