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
import { prepareSnapshots } from './snapshot.ts'
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
  const snapshots = prepareSnapshots(db)
  const reading = <T>(read: () => T): T => {
    try {
      return snapshots.run(read)
    } catch (error) {
      throw asFault(error)
    }
  }
  return {
    search: async ({ selection, terms, after, limit }) =>
      reading(() => search(selection, terms, after, limit)),
    build: async (task) => reading(() => build(task)),
    close: async () => undefined,
  }
}

/** For the server: one thread searches, so that a search delays no other request, and one builds the index, so that it delays no search. */
export function createNameThreads(directory: string): NameSearches {
  // The extension is .ts in the sources and .js in the published build.
  const searching = new URL(`./name-search-thread${extname(import.meta.url)}`, import.meta.url)
  const building = new URL(`./name-builder-thread${extname(import.meta.url)}`, import.meta.url)
  const start = <Request, Output>(name: string, file: URL) =>
    startOnDemand((onFailure) =>
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
