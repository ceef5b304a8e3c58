import { workerData } from 'node:worker_threads'
import { lowerOwnPriority } from '../../threads/lower-own-priority.ts'
import { type Outcome, serveBatches } from '../../threads/serve-batches.ts'
import type { FoundItems } from '../records.ts'
import { openConnection, readTimeout } from './connection.ts'
import { prepareSearchNames } from './name-search.ts'
import type { NameSearch } from './name-searches.ts'
import { prepareSnapshots } from './snapshot.ts'
import { asFault } from './sqlite-errors.ts'

// The worker thread that searches names for the server.

/** KiB of pages. */
const cacheSize = 32 * 1024

lowerOwnPriority()
const { directory }: { directory: string } = workerData
const db = openConnection(directory, readTimeout)
db.exec(`PRAGMA query_only = ON; PRAGMA cache_size = -${cacheSize}`)
const search = prepareSearchNames(db)
const snapshots = prepareSnapshots(db)

function searchOne({ selection, terms, after, limit }: NameSearch): Outcome<FoundItems> {
  try {
    return { output: snapshots.run(() => search(selection, terms, after, limit)) }
  } catch (error) {
    return { error: asFault(error) }
  }
}

serveBatches<NameSearch, FoundItems, null>(
  (searches, reply) => reply(searches.map(searchOne), null),
  () => db.close(),
)
