import type { UploadId } from '../../../core/upload-id.ts'
import type { Part } from '../part-memory.ts'
import type { SentPart } from './upload-parts.ts'

/** An upload whose bytes have all arrived, until they become a blob or a small file. */
export interface PendingCompletion {
  readonly size: number
  /** The parts that were sent and are not recorded in the catalog. */
  readonly parts: readonly SentPart[]
  /** Bytes after the parts and the recorded pieces; null if the object is complete already. */
  readonly tail: Part | null
}

/** The pending completions of this process. */
export interface PendingCompletions {
  add(id: UploadId, completion: PendingCompletion): void
  /** Removes the completion and returns it; the caller frees its tail. If the upload does not have `size` bytes, frees the tail and returns null. */
  take(id: UploadId, size: number): Promise<PendingCompletion | null>
  remove(id: UploadId): Promise<void>
}

export function createPendingCompletions(): PendingCompletions {
  const completions = new Map<UploadId, PendingCompletion>()

  async function remove(id: UploadId): Promise<void> {
    const completion = completions.get(id)
    completions.delete(id)
    await completion?.tail?.discard()
  }

  return {
    add: (id, completion) => void completions.set(id, completion),
    async take(id, size) {
      const completion = completions.get(id)
      if (completion?.size === size) {
        completions.delete(id)
        return completion
      }
      await remove(id)
      return null
    },
    remove,
  }
}
