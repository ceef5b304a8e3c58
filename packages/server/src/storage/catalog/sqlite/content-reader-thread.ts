import { workerData } from 'node:worker_threads'
import { lowerOwnPriority, type Outcome, serveBatches } from '../../batch-threads.ts'
import type { ContentId } from '../records.ts'
import { prepareReadContent } from './contents.ts'
import { asFault, openConnection, prepareSnapshots, readTimeout } from './database.ts'

// The worker thread that reads the bytes of items for the server.

type Content = Uint8Array<ArrayBuffer> | null

lowerOwnPriority()
const { directory }: { directory: string } = workerData
const db = openConnection(directory, readTimeout)
// A larger page cache would have few hits, because each read needs different pages. The operating system caches them.
db.exec('PRAGMA query_only = ON; PRAGMA cache_size = -4096')
const read = prepareReadContent(db)
const snapshots = prepareSnapshots(db)

function readOne(id: ContentId): Outcome<Content> {
  try {
    return { output: read(id) }
  } catch (error) {
    return { error: asFault(error) }
  }
}

serveBatches<ContentId, Content, null>(
  (ids, reply) => {
    snapshots.begin()
    const outcomes = ids.map(readOne)
    snapshots.end()
    const buffers = outcomes.flatMap((outcome) =>
      'output' in outcome && outcome.output ? [outcome.output.buffer] : [],
    )
    reply(outcomes, null, buffers)
  },
  () => db.close(),
)
