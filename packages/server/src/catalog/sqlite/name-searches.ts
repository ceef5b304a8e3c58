import { extname } from 'node:path'
import type { DatabaseSync } from 'node:sqlite'
import { startBatchThread } from '../../threads/start-batch-thread.ts'
import { startOnDemand } from '../../threads/start-on-demand.ts'
import type { NameTask } from '../names/index-tasks.ts'
import { createSearchQueue } from '../names/search-queue.ts'
import type { NewSegment } from '../names/segments.ts'
import type { FoundItems, ItemPlace, ItemSelection } from '../records.ts'
import { prepareBuildNames } from './name-builder.ts'
import { prepareSearchNames } from './name-search.ts'
import { asFault } from './sqlite-errors.ts'

/** Searches that are sent to the thread together. */
const sentTogether = 2

export interface NameSearch {
  readonly selection: ItemSelection
  readonly terms: readonly string[]
  readonly after: ItemPlace | null
  readonly limit: number
}

/** Searches names, and builds their index. */
export interface NameSearches {
  search(search: NameSearch): Promise<FoundItems>
  build(task: NameTask): Promise<NewSegment>
  /** Finishes the pending work. */
  close(): Promise<void>
}

/** For commands: on this thread, with the connection of the catalog. */
export function openDirectNameSearches(db: DatabaseSync): NameSearches {
  const search = prepareSearchNames(db)
  const build = prepareBuildNames(db)
  return {
    async search({ selection, terms, after, limit }) {
      return inSnapshot(db, () => search(selection, terms, after, limit))
    },
    build: async (task) => inSnapshot(db, () => build(task)),
    close: async () => undefined,
  }
}

/**
 * For the server: one thread searches, so that a search delays no other request, and one builds the index, so that it delays no search.
 * `onFailure` is called once when a thread ends before `close`.
 */
export function createNameThreads(directory: string, onFailure: (error: Error) => void): NameSearches {
  // The extension is .ts in the sources and .js in the published build.
  const searching = new URL(`./name-search-thread${extname(import.meta.url)}`, import.meta.url)
  const building = new URL(`./name-builder-thread${extname(import.meta.url)}`, import.meta.url)
  const start = <Request, Output>(name: string, file: URL) =>
    startOnDemand(() =>
      startBatchThread<Request, Output, null>({
        file,
        name,
        workerData: { directory },
        onReport: () => undefined,
        onFailure,
      }),
    )
  const searcher = start<NameSearch, FoundItems>('name-search', searching)
  const builder = start<NameTask, NewSegment>('name-builder', building)
  const queue = createSearchQueue(sentTogether)

  return {
    search: (search) =>
      queue(() => new Promise((resolve, reject) => searcher.send(search, { resolve, reject }))),
    build: (task) => new Promise((resolve, reject) => builder.send(task, { resolve, reject })),
    async close() {
      await searcher.close()
      await builder.close()
    },
  }
}

/** Reads in a snapshot. None leaves a transaction open that it has begun. */
function inSnapshot<T>(db: DatabaseSync, read: () => T): T {
  try {
    db.exec('BEGIN')
    return read()
  } catch (error) {
    throw asFault(error)
  } finally {
    // SQLite itself ends the transaction on some errors, such as a damaged catalog.
    if (db.isTransaction) db.exec('COMMIT')
  }
}
