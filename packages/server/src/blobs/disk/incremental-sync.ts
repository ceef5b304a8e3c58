import type { FileHandle } from 'node:fs/promises'

/** Bytes that set the disk to work. */
const stride = 2 * 1024 * 1024

/**
 * Syncs a file while more of it arrives, so that the sync which counts finds little left to do. None of these is proof
 * of anything but of failure: the kernel tells of a write that failed only once, and whoever was told must believe it.
 */
export interface IncrementalSync {
  wrote(bytes: number): void
  /** Rejects where one has failed. */
  settled(): Promise<void>
}

export function createIncrementalSync(file: FileHandle): IncrementalSync {
  let unsynced = 0
  let running: Promise<void> | null = null
  let failed: { readonly error: unknown } | null = null

  return {
    wrote(bytes) {
      unsynced += bytes
      if (unsynced < stride || running !== null || failed !== null) return
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
