import type { DatabaseSync } from 'node:sqlite'
import { integer } from '../rows.ts'
import { one } from './rows.ts'

/** The smallest number of pages in the write-ahead log after which a commit runs a checkpoint. */
const minInterval = 125
/** The largest number; SQLite's default. */
const maxInterval = 1000
/** Pages for each second that the fastest of recent commits took. */
const pagesPerSecond = 250_000
/** The number of commits of which the fastest one is used: on a busy core, most commits take longer than their sync. */
const observedCommits = 64

/**
 * Returns a function that is to be called with the seconds of each commit. It sets how often commits copy pages from the log to the
 * database. A checkpoint of 1,000 pages uses a core for about 4 ms without a break, during which requests on a busy core wait, so
 * checkpoints are short. But each one needs two more syncs. So the slower the syncs of the disk are, the rarer are checkpoints: with 5 ms for
 * each sync, an interval of 100 pages instead of 1,000 reduced the rate of uploads by 45 %.
 */
export function adaptCheckpoints(db: DatabaseSync): (commitSeconds: number) => void {
  const totalChanges = db.prepare('SELECT total_changes()')
  let changes = 0
  let fastest = Number.POSITIVE_INFINITY
  let observed = 0
  const set = (pages: number) => db.exec(`PRAGMA wal_autocheckpoint = ${pages}`)

  set(maxInterval)
  return (commitSeconds) => {
    const before = changes
    changes = integer(one(totalChanges) ?? [], 0)
    // A commit that changes nothing needs no sync.
    if (changes === before) return
    fastest = Math.min(fastest, commitSeconds)
    observed += 1
    if (observed < observedCommits) return
    set(Math.max(minInterval, Math.min(maxInterval, Math.round(fastest * pagesPerSecond))))
    fastest = Number.POSITIVE_INFINITY
    observed = 0
  }
}
