import type { BlobStore } from '../blobs/blobs.ts'
import type { Actor } from '../core/actor.ts'
import { createItemIds } from '../core/media-id.ts'
import { type CommitCatalog, commitFilesOperation, type RequestKey, type Stored } from './commit-files.ts'
import { type ItemParts, newItem, type OnStored, type UploadBucket } from './new-item.ts'
import { type FileReceiver, receivedBytes } from './receive-files.ts'
import type { IncomingFile, IncomingFiles, StoreItems } from './store-media.ts'

/** A file that has arrived completely; `filename` and `declaredType` are as sent by the client. */
interface WholeFile extends Omit<IncomingFile, 'body'> {
  readonly bytes: Uint8Array
  /** When the item expires; null or left out for never. */
  readonly expiresAt?: number | null
}

export type StoreSmallFile = ReturnType<typeof storeSmallFileOperation>

/**
 * Stores a small file with less work than StoreItems: nothing is streamed, and only the commit checks the quota. Passes the
 * file to StoreItems if it is not small, or if the memory for small files is in use.
 */
export function storeSmallFileOperation(
  parts: Omit<ItemParts, 'blobs'> & {
    readonly catalog: CommitCatalog
    readonly blobs: BlobStore
    readonly newReceiver: () => FileReceiver
    readonly onStored: OnStored
    readonly storeItems: StoreItems
    readonly now: () => number
  },
) {
  const { newReceiver, storeItems, now } = parts
  const newId = createItemIds(now)
  const commitFiles = commitFilesOperation(parts)

  /** Stores one file, durable when it resolves. Takes over the memory of the bytes. */
  return async function storeSmallFile(
    bucket: UploadBucket,
    sent: WholeFile,
    key: RequestKey | null,
    by: Actor,
  ): Promise<Stored> {
    const size = sent.bytes.byteLength
    const receiver = newReceiver()
    if (!receiver.reserve(size))
      return storeItems(bucket, alone({ ...sent, body: sent.bytes }), {
        ...{ by, key, declaredBytes: size, atMost: size },
        expiresAt: sent.expiresAt ?? null,
      })
    try {
      const file = receivedBytes(sent.bytes)
      const { sha256 } = file
      const { item, stored } = await newItem(parts, file, bucket, { ...sent, id: newId(), createdAt: now() })
      const arrival = { sent: { ...sent, sha256 }, file: stored, item }
      return await commitFiles(bucket.bucketId, [arrival], { by, key })
    } finally {
      receiver.release()
    }
  }
}

async function* alone(file: IncomingFile): IncomingFiles {
  yield [file]
}
