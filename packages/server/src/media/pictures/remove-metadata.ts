import type { BlobStore, OpenBlob } from '../../blobs/blobs.ts'
import type { BucketId } from '../../catalog/records.ts'
import { Fault } from '../../core/fault.ts'
import { createMediaIds } from '../../core/media-id.ts'
import { type ReceivedFile, received } from '../receive-files.ts'
import { lengthOf, type Piece, requireBounded, UnreadableFile } from './metadata/pieces.ts'
import { hasRemovableMetadata } from './metadata/plan-removal.ts'
import { PictureOverLimits, PictureWorkersBusy } from './picture-errors.ts'
import type { PictureWorkers, ReadBytes } from './picture-workers.ts'

/**
 * Returns the file without its metadata (docs/interface.md X2): a new one with an id of its own if its bytes are in the blob store, or the
 * same one if it has none. The caller discards the other one. Throws Fault `file-unreadable`, `overloaded` and `storage-full`.
 */
export type RemoveMetadata = (
  file: ReceivedFile,
  contentType: string,
  bucketId: BucketId,
) => Promise<ReceivedFile>

/** Bytes that are copied at a time. */
const copyLength = 1024 * 1024

/** A worker finds the metadata, and this process copies the rest, so that no worker can read or write other files. */
export function removeMetadataOperation(parts: {
  readonly blobs: Pick<BlobStore, 'openReceived' | 'receive'>
  readonly workers: Pick<PictureWorkers, 'run'>
  readonly now: () => number
}): RemoveMetadata {
  const { blobs, workers } = parts
  const newId = createMediaIds(parts.now)

  async function plan(
    file: ReceivedFile,
    contentType: string,
    bucketId: BucketId,
    read?: ReadBytes,
  ): Promise<readonly Piece[]> {
    const bytes = 'bytes' in file ? file.bytes : null
    try {
      const task = { type: 'plan-removal', contentType, size: file.size, bytes } as const
      const result = await workers.run(task, `${bucketId}`, read)
      if (result.outcome === 'planned') {
        requireBounded(result.pieces, file.size)
        return result.pieces
      }
      throw unreadable(contentType)
    } catch (error) {
      if (error instanceof PictureWorkersBusy || (error instanceof PictureOverLimits && error.isTimeout))
        throw new Fault('overloaded', 'Removing the metadata of the file takes too long at the moment.', {
          cause: error,
        })
      if (error instanceof PictureOverLimits || error instanceof UnreadableFile)
        throw unreadable(contentType, error)
      throw error
    }
  }

  return async (file, contentType, bucketId) => {
    if (!hasRemovableMetadata(contentType)) return file
    if ('bytes' in file) {
      const pieces = await plan(file, contentType, bucketId)
      return isWhole(pieces, file) ? file : received(joined(pieces, file.bytes))
    }
    const opened = await blobs.openReceived(file)
    try {
      const pieces = await plan(file, contentType, bucketId, (position, length) =>
        readPart(opened, position, length),
      )
      if (isWhole(pieces, file)) return file
      return await blobs.receive(newId(), copied(pieces, opened), Number.POSITIVE_INFINITY)
    } finally {
      await opened.close()
    }
  }
}

const isWhole = ([first, ...more]: readonly Piece[], { size }: ReceivedFile): boolean =>
  more.length === 0 && first !== undefined && 'from' in first && first.from === 0 && first.to === size

async function readPart(opened: OpenBlob, position: number, length: number): Promise<Uint8Array> {
  const bytes = Buffer.allocUnsafeSlow(length)
  await opened.read(bytes, position)
  return bytes
}

function joined(pieces: readonly Piece[], from: Uint8Array): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(pieces.reduce((sum, piece) => sum + lengthOf(piece), 0))
  let position = 0
  for (const piece of pieces) {
    if ('bytes' in piece) bytes.set(piece.bytes, position)
    if ('from' in piece) bytes.set(from.subarray(piece.from, piece.to), position)
    position += lengthOf(piece)
  }
  return bytes
}

async function* copied(pieces: readonly Piece[], opened: OpenBlob): AsyncGenerator<Uint8Array> {
  const buffer = Buffer.allocUnsafeSlow(copyLength)
  for (const piece of pieces) {
    if ('bytes' in piece) yield piece.bytes
    else
      for (let done = 0; done < lengthOf(piece); ) {
        const part = buffer.subarray(0, Math.min(copyLength, lengthOf(piece) - done))
        if ('from' in piece) await opened.read(part, piece.from + done)
        else part.fill(0)
        done += part.byteLength
        yield part
      }
  }
}

const unreadable = (contentType: string, cause?: unknown) =>
  new Fault(
    'file-unreadable',
    `This bucket removes metadata from files of the type ${contentType}. This file is damaged or of an unknown form, so its metadata cannot be found.`,
    { cause },
  )
