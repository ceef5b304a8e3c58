import type { Files } from './files.ts'

export type DirectorySync = (directory: string) => Promise<void>

interface Round {
  readonly running: Promise<void>
  next: Promise<void> | null
}

/**
 * Syncs directories. Calls that come while a directory's sync is running share the next one: only a sync that begins
 * after a change is proof of it.
 */
export function createDirectorySync(files: Pick<Files, 'openDirectory'>): DirectorySync {
  /** The latest round of each directory; there are no more of them than shards. */
  const rounds = new Map<string, Round>()

  async function syncOnce(directory: string): Promise<void> {
    const opened = files.openDirectory(directory)
    try {
      await opened.sync()
    } finally {
      opened.close()
    }
  }

  function begin(directory: string): Promise<void> {
    const round: Round = { running: syncOnce(directory), next: null }
    rounds.set(directory, round)
    return round.running
  }

  return (directory) => {
    const round = rounds.get(directory)
    if (round === undefined) return begin(directory)
    const again = (): Promise<void> => begin(directory)
    round.next ??= round.running.then(again, again)
    return round.next
  }
}
