import { createHash, type Hash } from 'node:crypto'
import type { UploadId } from '../core/upload-id.ts'

/** Hashes that are cached. Others are computed from the stored bytes. */
const cacheSize = 1_000

/** Caches the SHA-256 states of partial uploads, so that the bytes need not be read again when an upload completes. */
export interface PartialUploadHashes {
  /** Removes the state from the cache; the caller owns it. Null if the hash of the bytes before `offset` is unknown. */
  take(id: UploadId, offset: number): Hash | null
  store(id: UploadId, size: number, hash: Hash): void
  forget(id: UploadId): void
  /** The SHA-256 of the whole upload. `compute` reads the stored bytes; it is called if the state is not cached. */
  digest(id: UploadId, size: number, compute: () => Promise<Uint8Array>): Promise<Uint8Array>
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

    async digest(id, size, compute) {
      const state = cache.get(id)
      cache.delete(id)
      return state?.size === size ? state.hash.digest() : compute()
    },
  }
}
