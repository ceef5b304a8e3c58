import type { FileHandle } from 'node:fs/promises'

/** Bytes between two syncs. */
const interval = 2 * 1024 * 1024

/**
 * Syncs a file while more of it is received, so that the final sync is short. The caller must still sync at the end, and
 * must treat an error here as final: the kernel reports a failed write only once.
 */
export interface IncrementalSync {
  /** Call it after each write, with its number of bytes. Starts a sync if enough bytes are written and none is running. */
  wrote(bytes: number): void
  /** Waits for the sync that is running. Rejects if it or an earlier one has failed. */
  settled(): Promise<void>
}

export function createIncrementalSync(file: FileHandle): IncrementalSync {
  let unsynced = 0
  let running: Promise<void> | null = null
  let failed: { readonly error: unknown } | null = null

  return {
    wrote(bytes) {
      unsynced += bytes
      if (unsynced < interval || running !== null || failed !== null) return
      unsynced = 0
      running = file
        .datasync()
        .catch((error: unknown) => {
          failed = { error }
        })
        .finally(() => {
          running = null
        })
    },

    async settled() {
      await running
      if (failed !== null) throw failed.error
    },
  }
}
