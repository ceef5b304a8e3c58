import { workerData } from 'node:worker_threads'
import { serveBatches } from '../../batch-threads.ts'
import { hasMuchFreeSpace, releaseInBackground, releasePages } from '../../sqlite.ts'
import type { Output } from '../catalog.ts'
import { prepareChanges } from './changes.ts'
import { limitLogSize, openConnection, runTransaction } from './database.ts'
import { adaptCheckpoints, commitBatch, fromSent, type SentChange } from './writer.ts'

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
