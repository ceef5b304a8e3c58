import { createHash, type Hash } from 'node:crypto'
import type { FileHandle } from 'node:fs/promises'
import type { UploadId } from '../../core/upload-id.ts'
import { PartialUploadLost } from '../blobs.ts'

/** Parts whose hash is kept; that of a forgotten one is made anew from its file. */
const remembered = 1_000

/** Bytes per read: half a millisecond of hashing, between which the thread does other work. */
const readLength = 1024 * 1024

/** The SHA-256 of parts so far, so that a part that arrives within one process need not be read again at its end. */
export interface PartialUploadHashes {
  /** Hashes on from this offset; null where the hash of the bytes before is not known. The hash is handed over. */
  at(id: UploadId, offset: number): Hash | null
  store(id: UploadId, size: number, hash: Hash): void
  forget(id: UploadId): void
  /** The SHA-256 of the whole part, read from its file where it is not known. */
  whole(id: UploadId, file: FileHandle, size: number): Promise<Uint8Array>
}

export function createPartialUploadHashes(): PartialUploadHashes {
  const known = new Map<UploadId, { readonly size: number; readonly hash: Hash }>()

  return {
    at(id, offset) {
      const state = known.get(id)
      known.delete(id)
      if (state?.size === offset) return state.hash
      return offset === 0 ? createHash('sha256') : null
    },

    store(id, size, hash) {
      known.set(id, { size, hash })
      const [oldest] = known.keys()
      if (known.size > remembered && oldest !== undefined) known.delete(oldest)
    },

    forget(id) {
      known.delete(id)
    },

    async whole(id, file, size) {
      const state = known.get(id)
      known.delete(id)
      return state?.size === size ? state.hash.digest() : hashOfFile(file, size)
    },
  }
}

async function hashOfFile(file: FileHandle, size: number): Promise<Uint8Array> {
  const hash = createHash('sha256')
  const buffer = Buffer.allocUnsafeSlow(Math.max(1, Math.min(size, readLength)))
  for (let position = 0; position < size; ) {
    const { bytesRead } = await file.read(buffer, 0, buffer.length, position)
    if (bytesRead === 0) throw new PartialUploadLost('a part ended before its size')
    hash.update(buffer.subarray(0, bytesRead))
    position += bytesRead
  }
  return hash.digest()
}
