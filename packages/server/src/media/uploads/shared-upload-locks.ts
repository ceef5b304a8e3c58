import type { UploadId } from '../../core/upload-id.ts'
import { createUploadLocks, type UploadLocks } from './upload-locks.ts'

/** The locks of all processes (UploadLockTable), as one process sees them. */
export interface SharedLocks {
  /** Resolves when this process has the lock. */
  acquire(
    id: UploadId,
    holder: { abort(): void; isStalled(): boolean },
  ): Promise<{
    release(): void
  }>
  waitForWriter(id: UploadId): Promise<void>
}

/** Locks that exclude the requests of this process and of the other processes. */
export function shareUploadLocks(shared: SharedLocks): UploadLocks {
  const local = createUploadLocks()
  return {
    hold: (id, work) =>
      local.hold(id, async (lock) => {
        const takenOver = new AbortController()
        const lease = await shared.acquire(id, {
          abort: () => takenOver.abort(),
          isStalled: lock.isStalled,
        })
        try {
          return await work({ ...lock, signal: AbortSignal.any([lock.signal, takenOver.signal]) })
        } finally {
          lease.release()
        }
      }),

    async waitForWriter(id) {
      if (local.isHeld(id)) await local.waitForWriter(id)
      else await shared.waitForWriter(id)
    },

    allReleased: local.allReleased,
  }
}
