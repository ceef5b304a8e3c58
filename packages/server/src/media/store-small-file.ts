import type { BlobStore } from '../blobs/blobs.ts'
import type { BucketId, NewMedia } from '../catalog/records.ts'
import { createMediaIds } from '../core/media-id.ts'
import { type CommitCatalog, commitFilesOperation, type RequestKey } from './commit-files.ts'
import { newItem } from './new-item.ts'
import type { MeasurePicture } from './pictures/measure-picture.ts'
import { type FileReceiver, receivedBytes } from './receive-files.ts'

/** A small file, received completely; `filename` and `declaredType` are as sent by the client. */
interface SmallFile {
  readonly bytes: Uint8Array
  readonly filename: string | null
  readonly declaredType: string | null
}

/** An upload of one small file whose memory is reserved. */
export interface SmallUpload {
  /** Stores the file, durable when it resolves. The bytes can be reused afterwards. */
  store(
    bucketId: BucketId,
    file: SmallFile,
    key: RequestKey | null,
  ): Promise<{ readonly item: NewMedia; readonly repeated: boolean }>
  /** Releases the memory. Call it when the request has ended. */
  release(): void
}

/** Begins an upload of one file of `size` bytes. Returns null where StoreMedia must receive the file: it is not small, or there is no memory. */
export type BeginSmallUpload = (size: number) => SmallUpload | null

/**
 * Stores small files with less work than StoreMedia: nothing is streamed, and the quota is checked only by the commit,
 * which follows at once.
 */
export function storeSmallFileOperation(parts: {
  readonly catalog: CommitCatalog
  readonly blobs: BlobStore
  readonly newReceiver: () => FileReceiver
  readonly measurePicture: MeasurePicture
  /** Bytes. */
  readonly maxFileSize: number
  readonly now: () => number
}): BeginSmallUpload {
  const { newReceiver, maxFileSize, now } = parts
  const newId = createMediaIds(now)
  const commitFiles = commitFilesOperation(parts)

  return (size) => {
    if (size > maxFileSize) return null
    const receiver = newReceiver()
    if (!receiver.reserve(size)) return null
    return {
      async store(bucketId, sent, key) {
        const file = receivedBytes(sent.bytes)
        const item = await newItem(parts, file, { ...sent, id: newId(), createdAt: now() })
        const { media, repeated } = await commitFiles(bucketId, [{ sent, file, item }], key)
        return { item: media[0] ?? item, repeated }
      },
      release: receiver.release,
    }
  }
}
