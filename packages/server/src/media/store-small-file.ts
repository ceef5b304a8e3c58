import type { BlobStore } from '../blobs/blobs.ts'
import type { BucketId } from '../catalog/records.ts'
import type { Actor } from '../core/actor.ts'
import { createMediaIds } from '../core/media-id.ts'
import { type CommitCatalog, commitFilesOperation, type RequestKey, type Stored } from './commit-files.ts'
import { newItem } from './new-item.ts'
import type { MeasurePicture } from './pictures/measure-picture.ts'
import { type FileReceiver, receivedBytes } from './receive-files.ts'
import type { IncomingFile, StoreMedia } from './store-media.ts'

/** A file that has arrived completely; `filename` and `declaredType` are as sent by the client. */
interface WholeFile extends Omit<IncomingFile, 'source'> {
  readonly bytes: Uint8Array
}

/** Stores one file, durable when it resolves. The bytes can be reused afterwards. */
export type StoreSmallFile = (
  bucketId: BucketId,
  file: WholeFile,
  key: RequestKey | null,
  by: Actor,
) => Promise<Stored>

/**
 * Stores a small file with less work than StoreMedia: nothing is streamed, and only the commit checks the quota. Passes the
 * file to StoreMedia if it is not small, or if the memory for small files is in use.
 */
export function storeSmallFileOperation(parts: {
  readonly catalog: CommitCatalog
  readonly blobs: BlobStore
  readonly newReceiver: () => FileReceiver
  readonly measurePicture: MeasurePicture
  readonly storeMedia: StoreMedia
  readonly now: () => number
}): StoreSmallFile {
  const { newReceiver, storeMedia, now } = parts
  const newId = createMediaIds(now)
  const commitFiles = commitFilesOperation(parts)

  return async (bucketId, sent, key, by) => {
    const size = sent.bytes.byteLength
    const receiver = newReceiver()
    if (!receiver.reserve(size))
      return storeMedia(bucketId, asStream(sent), { by, key, declaredBytes: size, atMost: size })
    try {
      const file = receivedBytes(sent.bytes)
      const item = await newItem(parts, file, { ...sent, id: newId(), createdAt: now() })
      return await commitFiles(bucketId, [{ sent, file, item }], { by, key })
    } finally {
      receiver.release()
    }
  }
}

async function* asStream({ bytes, filename, declaredType }: WholeFile): AsyncGenerator<IncomingFile> {
  yield { source: inOneChunk(bytes), filename, declaredType }
}

async function* inOneChunk(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes
}
