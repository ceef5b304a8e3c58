import type { Files } from './files.ts'

export type DirectorySync = (directory: string) => Promise<void>

/**
 * Syncs directories. Calls for one directory share its next sync until that has started: a change is durable only after a
 * sync that started after the change.
 */
export function createDirectorySync(files: Pick<Files, 'openDirectory'>): DirectorySync {
  /** The next sync of each directory, not started yet. */
  const next = new Map<string, Promise<void>>()
  /** The sync in progress of each directory. */
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
    // Yields in any case, so that calls of the same tick share this sync.
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
    const waiting = next.get(directory)
    if (waiting !== undefined) return waiting
    const begun = begin(directory)
    next.set(directory, begun)
    return begun
  }
}
