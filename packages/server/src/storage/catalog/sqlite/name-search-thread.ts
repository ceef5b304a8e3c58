import { workerData } from 'node:worker_threads'
import { lowerOwnPriority, type Outcome, serveBatches } from '../../batch-threads.ts'
import { hasLittleMemory } from '../../memory.ts'
import type { ItemRows } from '../records.ts'
import { openConnection, readTimeout } from './database.ts'
import { type NameSearch, prepareSearchNames } from './name-search.ts'

// The worker thread that searches names for the server.

/** KiB of pages: a million names. */
const cacheSize = (hasLittleMemory ? 8 : 32) * 1024

lowerOwnPriority()
const { directory }: { directory: string } = workerData
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
