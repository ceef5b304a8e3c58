import { workerData } from 'node:worker_threads'
import { serveBatches } from '../../threads/serve-batches.ts'
import { commitBatch } from './batch.ts'
import { type Change, type Output, prepareChanges } from './changes.ts'
import { openConnection } from './connection.ts'
import { limitLogSize } from './reclaim-space.ts'

// The worker thread that owns the server's writing connection, so that no sync to disk stalls the requests.

const { directory }: { directory: string } = workerData
const db = openConnection(directory)
// After a crash the write-ahead log may hold frames that were written but never synced. A checkpoint copies and syncs
// them before new changes depend on them.
db.exec('PRAGMA wal_checkpoint(TRUNCATE)')
const functions = prepareChanges(db)

serveBatches<Change, Output, number>(
  (changes, reply) => {
    const start = performance.now()
    reply(commitBatch(db, functions, changes), (performance.now() - start) / 1000)
    limitLogSize(db)
  },
  () => db.close(),
)
