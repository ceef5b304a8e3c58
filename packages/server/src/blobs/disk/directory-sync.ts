import type { Files } from './files.ts'

export type DirectorySync = (directory: string) => Promise<void>

/**
 * Syncs directories. Calls that come before a directory's next sync has begun share it: only a sync that begins after
 * a change is proof of it.
 */
export function createDirectorySync(files: Pick<Files, 'openDirectory'>): DirectorySync {
  /** Of each directory the sync that has not begun yet; no more of them than shards. */
  const next = new Map<string, Promise<void>>()
  /** And the one that runs. */
  const running = new Map<string, Promise<void>>()

  async function syncOnce(directory: string): Promise<void> {
    const opened = files.openDirectory(directory)
    try {
      await opened.sync()
    } finally {
      opened.close()
    }
  }

  async function begin(directory: string): Promise<void> {
    // Whoever comes in the same moment still gets in.
    await running.get(directory)?.catch(() => undefined)
    next.delete(directory)
    const sync = syncOnce(directory)
    running.set(directory, sync)
    try {
      await sync
    } finally {
      if (running.get(directory) === sync) running.delete(directory)
    }
  }

  return (directory) => {
    const known = next.get(directory)
    if (known !== undefined) return known
    const begun = begin(directory)
    next.set(directory, begun)
    return begun
  }
}
