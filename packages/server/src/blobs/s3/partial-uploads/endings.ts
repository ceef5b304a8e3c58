import type { UploadId } from '../../../core/upload-id.ts'
import type { Part } from '../part-memory.ts'
import type { SentPart } from './upload-parts.ts'

/** The last bytes of a complete upload, until it is turned into a blob. */
export interface Ending {
  readonly size: number
  /** Sent, not recorded. */
  readonly parts: readonly SentPart[]
  /** Bytes after the parts and the recorded pieces; null if the object is complete already. */
  readonly tail: Part | null
}

/** The endings of complete uploads in this process. */
export interface Endings {
  add(id: UploadId, ending: Ending): void
  /** The caller frees the tail. Null, and nothing is left, if there is no ending of an upload of `size` bytes. */
  take(id: UploadId, size: number): Promise<Ending | null>
  remove(id: UploadId): Promise<void>
}

export function createEndings(): Endings {
  const endings = new Map<UploadId, Ending>()

  async function remove(id: UploadId): Promise<void> {
    const ending = endings.get(id)
    endings.delete(id)
    await ending?.tail?.discard()
  }

  return {
    add: (id, ending) => void endings.set(id, ending),
    async take(id, size) {
      const ending = endings.get(id)
      if (ending?.size === size) {
        endings.delete(id)
        return ending
      }
      await remove(id)
      return null
    },
    remove,
  }
}
