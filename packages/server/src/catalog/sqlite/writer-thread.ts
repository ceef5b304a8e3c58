import { workerData } from 'node:worker_threads'
import { hasMuchFreeSpace, releaseInBackground, releasePages } from '../../sqlite/free-pages.ts'
import { serveBatches } from '../../threads/serve-batches.ts'
import type { Output } from '../changes.ts'
import { adaptCheckpoints } from './adapt-checkpoints.ts'
import { commitBatch } from './batch.ts'
import { prepareChanges } from './changes.ts'
import { openConnection } from './connection.ts'
import { limitLogSize } from './reclaim-space.ts'
import { fromSent, type SentChange } from './sent-changes.ts'
import { runTransaction } from './transaction.ts'

// The worker thread that owns the server's writing connection, so that no sync to disk stalls the requests.

const { directory }: { directory: string } = workerData
const db = openConnection(directory)
// After a crash the write-ahead log may hold frames that were written but never synced. A checkpoint copies and syncs
// them before new changes depend on them.
db.exec('PRAGMA wal_checkpoint(TRUNCATE)')
const applyChange = prepareChanges(db)
const observeCommit = adaptCheckpoints(db)
const stopReleasing = releaseInBackground(() => {
  if (!hasMuchFreeSpace(db)) return false
  runTransaction(db, () => releasePages(db))
  limitLogSize(db)
  return true
})

function tendLog(commitSeconds: number): void {
  try {
    observeCommit(commitSeconds)
  } catch {
    // The interval between checkpoints stays as it is. The next change reports what is wrong with the disk.
  }
  limitLogSize(db)
}

serveBatches<SentChange, Output, number>(
  (sent, reply) => {
    const changes = sent.map(fromSent)
    const start = performance.now()
    const outcomes = commitBatch(db, applyChange, changes)
    const seconds = (performance.now() - start) / 1000
    reply(outcomes, seconds)
    tendLog(seconds)
  },
  () => {
    stopReleasing()
    db.close()
  },
)
