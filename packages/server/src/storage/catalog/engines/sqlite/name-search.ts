import { extname } from 'node:path'
import type { DatabaseSync } from 'node:sqlite'
import {
  lowerOwnPriority,
  OnDemandThread,
  type Outcome,
  serveBatches,
  startBatchThread,
} from '../../../batch-threads.ts'
import { hasLittleMemory } from '../../../memory.ts'
import type { Bounds } from '../../lists/item-scan.ts'
import { createSearchQueue, searchItems } from '../../lists/item-searches.ts'
import type { ItemPlace, ItemRows, ItemSelection } from '../../records.ts'
import { createRun, openConnection, prepareSnapshots, readTimeout, withFaults } from './sqlite-database.ts'

/** Searches that are sent to the thread together. */
const sentTogether = 2

interface NameSearch {
  readonly selection: ItemSelection
  readonly after: ItemPlace | null
  readonly limit: number
}

export interface NameSearches {
  search(search: NameSearch): Promise<ItemRows>
  /** Finishes the pending searches. */
  close(): Promise<void>
}

/** Finds items in one snapshot. */
export function prepareSearchNames(
  db: DatabaseSync,
  bounds?: Partial<Bounds>,
): (search: NameSearch) => ItemRows {
  const snapshots = prepareSnapshots(db)
  const run = createRun(db)
  return ({ selection, after, limit }) =>
    withFaults(() => snapshots.run(() => run(searchItems('sqlite', selection, after, limit, bounds))))
}

/** For commands: on this thread, with the connection of the catalog. */
export function openDirectNameSearches(db: DatabaseSync): NameSearches {
  const search = prepareSearchNames(db)
  return { search: async (input) => search(input), close: async () => undefined }
}

/** For the server: on a thread, so that a search delays no other request. */
export function createNameSearchThread(directory: string): NameSearches {
  // The extension is .ts in the sources and .js in the published build.
  const file = new URL(`./name-search-thread${extname(import.meta.url)}`, import.meta.url)
  const thread = new OnDemandThread((onFailure) =>
    startBatchThread<NameSearch, ItemRows, null>({
      file,
      name: 'name-search',
      workerData: { directory },
      onReport: () => undefined,
      onFailure,
    }),
  )
  const queue = createSearchQueue(sentTogether)
  return {
    search: (search) =>
      queue(
        search.selection.bucketId,
        () => new Promise((resolve, reject) => thread.send(search, { resolve, reject })),
      ),
    close: () => thread.close(),
  }
}

/** KiB of pages: a million names, or an eighth of that with little memory. */
const cacheSize = (hasLittleMemory ? 4 : 32) * 1024

/** The side of the thread. */
export function serveNameSearches(directory: string): void {
  lowerOwnPriority()
  const db = openConnection(directory, readTimeout)
  db.exec(`PRAGMA query_only = ON; PRAGMA cache_size = -${cacheSize}`)
  const search = prepareSearchNames(db)

  function searchOne(input: NameSearch): Outcome<ItemRows> {
    try {
      return { output: search(input) }
    } catch (error) {
      return { error }
    }
  }

  serveBatches<NameSearch, ItemRows, null>(
    (searches, reply) => reply(searches.map(searchOne), null),
    () => db.close(),
  )
}
