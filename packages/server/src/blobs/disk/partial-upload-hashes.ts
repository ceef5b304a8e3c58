import { createHash, type Hash } from 'node:crypto'
import type { FileHandle } from 'node:fs/promises'
import type { UploadId } from '../../core/upload-id.ts'
import { PartialUploadLost } from '../blobs.ts'

/** Hashes that are cached. Others are computed from the file. */
const cacheSize = 1_000

/** Bytes for each read: hashing them blocks the thread for half a millisecond. */
const readLength = 1024 * 1024

/** Caches the SHA-256 states of partial uploads, so that the file need not be read again when an upload completes. */
export interface PartialUploadHashes {
  /** Removes the state from the cache; the caller owns it. Null if the hash of the bytes before `offset` is unknown. */
  take(id: UploadId, offset: number): Hash | null
  store(id: UploadId, size: number, hash: Hash): void
  forget(id: UploadId): void
  /** The SHA-256 of the whole upload. Reads the file if the state is not cached. */
  digest(id: UploadId, file: FileHandle, size: number): Promise<Uint8Array>
}

export function createPartialUploadHashes(): PartialUploadHashes {
  const cache = new Map<UploadId, { readonly size: number; readonly hash: Hash }>()

  return {
    take(id, offset) {
      const state = cache.get(id)
      cache.delete(id)
      if (state?.size === offset) return state.hash
      return offset === 0 ? createHash('sha256') : null
    },

    store(id, size, hash) {
      cache.set(id, { size, hash })
      const [oldest] = cache.keys()
      if (cache.size > cacheSize && oldest !== undefined) cache.delete(oldest)
    },

    forget(id) {
      cache.delete(id)
    },

    async digest(id, file, size) {
      const state = cache.get(id)
      cache.delete(id)
      return state?.size === size ? state.hash.digest() : hashFile(file, size)
    },
  }
}

async function hashFile(file: FileHandle, size: number): Promise<Uint8Array> {
  const hash = createHash('sha256')
  const buffer = Buffer.allocUnsafeSlow(Math.max(1, Math.min(size, readLength)))
  for (let position = 0; position < size; ) {
    const { bytesRead } = await file.read(buffer, 0, buffer.length, position)
    if (bytesRead === 0) throw new PartialUploadLost('a partial upload ended before its size')
    hash.update(buffer.subarray(0, bytesRead))
    position += bytesRead
  }
  return hash.digest()
}
