import { extname, join } from 'node:path'
import type { DatabaseSync } from 'node:sqlite'
import { type Outcome, serveBatches, startBatchThread } from '../../../batch-threads.ts'
import {
  endsTransaction,
  hasMuchFreeSpace,
  isCorrupt,
  isFull,
  isIoError,
  releaseInBackground,
  releasePages,
} from '../../../sqlite.ts'
import {
  addsItems,
  groupAddedItems,
  hasAddedItems,
  isKind,
  joinItems,
  type Output,
  type Write,
  type WriteKind,
} from '../../nouns.ts'
import { integer } from '../../statements.ts'
import { explainOpenError } from './data-directory.ts'
import {
  asFault,
  begin,
  commit,
  limitLogSize,
  one,
  openConnection,
  reclaimSpace,
  rollback,
  runTransaction,
  withFaults,
} from './sqlite-database.ts'
import { type ApplyWrite, prepareWrites } from './sqlite-writes.ts'

/** Applies writes durably: a promise resolves once its write is committed and synced. */
export interface Writer {
  apply<K extends WriteKind>(write: Write<K>): Promise<Output<K>>
  /** Changes that are queued or in progress. */
  pendingCount(): number
  /** Finishes the pending writes and closes the database. */
  close(): Promise<void>
}

/** For commands, whether a server is running or not: each write is a short transaction on this thread. */
export function openDirectWriter(directory: string): Writer {
  const db = openConnection(directory)
  const applyWrite = prepareWrites(db)
  return {
    apply: async (write) => withFaults(() => runTransaction(db, () => applyWrite(write))),
    pendingCount: () => 0,
    async close() {
      if (db.isOpen) db.close()
    },
  }
}

/**
 * For the server: a worker thread commits all writes that have arrived in one transaction. `onFailure` is called once
 * when the thread ends before `close`; `onCommit` receives the seconds of each transaction.
 */
export async function startWriterThread(
  directory: string,
  onFailure: (error: Error) => void,
  onCommit: (seconds: number) => void,
): Promise<Writer> {
  // The extension is .ts in the sources and .js in the published build.
  const file = new URL(`./writer-thread${extname(import.meta.url)}`, import.meta.url)
  const thread = await startBatchThread<Write, Output, number>({
    file,
    name: 'catalog-writer',
    workerData: { directory },
    onReport: onCommit,
    onFailure,
  }).catch((error: unknown) => {
    throw explainOpenError(join(directory, 'catalog.db'), error)
  })
  return {
    apply: <K extends WriteKind>(write: Write<K>) =>
      // The output of a write is of its kind.
      new Promise<Output>((resolve, reject) => {
        thread.send(write, { resolve, reject }, buffersOf(write))
      }) as Promise<Output<K>>,
    pendingCount: () => thread.pendingCount(),
    close: () => thread.close(),
  }
}

/**
 * The side of the thread, which owns the server's writing connection, so that no sync to disk stalls the requests. The report of a batch is the
 * seconds of its transaction.
 */
export function serveWrites(directory: string): void {
  const db = openConnection(directory)
  // After a crash the write-ahead log may hold frames that were written but never synced. A checkpoint copies and syncs
  // them before new writes depend on them.
  db.exec('PRAGMA wal_checkpoint(TRUNCATE)')
  const applyWrite = prepareWrites(db)
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
      // The interval between checkpoints stays as it is. The next write reports what is wrong with the disk.
    }
    limitLogSize(db)
  }

  serveBatches<Write, Output, number>(
    (writes, reply) => {
      const start = performance.now()
      const outcomes = commitBatch(db, applyWrite, writes)
      const seconds = (performance.now() - start) / 1000
      reply(outcomes, seconds)
      tendLog(seconds)
    },
    () => {
      stopReleasing()
      db.close()
    },
  )
}

/**
 * Applies the writes in one transaction. A write that fails is rolled back alone; when the transaction fails, all its
 * writes fail. If a write meets a damaged or unreadable page, each is applied in a transaction of its own. On a full disk it frees
 * space and retries once. Never throws.
 */
export function commitBatch(
  db: DatabaseSync,
  applyWrite: ApplyWrite,
  writes: readonly Write[],
): Outcome<Output>[] {
  const groups = groupAddedItems(writes)
  let isCommitting = false
  const apply = () => {
    begin(db)
    const [only, ...others] = groups
    const outcomes =
      (only && others.length === 0 ? applyAlone(db, applyWrite, only) : null) ??
      groups.flatMap((group) => applyGroup(db, applyWrite, group))
    isCommitting = true
    commit(db)
    return outcomes
  }
  try {
    try {
      return apply()
    } catch (error) {
      rollback(db)
      if (!isFull(error) || !reclaimSpace(db)) throw error
      return apply()
    }
  } catch (error) {
    rollback(db)
    if (writes.length > 1 && !isCommitting && (isCorrupt(error) || isIoError(error)))
      return writes.flatMap((write) => commitBatch(db, applyWrite, [write]))
    const failed = { error: asFault(error) }
    return writes.map(() => failed)
  }
}

/**
 * Applies the only group of a transaction without a savepoint, which would copy every page that changes. If it fails,
 * begins the transaction again and returns null.
 */
function applyAlone(
  db: DatabaseSync,
  applyWrite: ApplyWrite,
  group: readonly Write[],
): Outcome<Output>[] | null {
  try {
    const output = applyWrite(asOne(group))
    return group.map(() => ({ output }))
  } catch (error) {
    if (endsTransaction(error) || !db.isTransaction) throw error
    begin(db)
    return null
  }
}

/**
 * Applies uploads to one bucket as one write, so that they share a savepoint. If they fail together, applies each alone,
 * so that only those fail that must.
 */
function applyGroup(db: DatabaseSync, applyWrite: ApplyWrite, group: readonly Write[]): Outcome<Output>[] {
  if (group.length > 1) {
    const outcome = applyInSavepoint(db, applyWrite, asOne(group))
    if (!('error' in outcome)) return group.map(() => outcome)
  }
  return group.map((write) => applyInSavepoint(db, applyWrite, write))
}

/** The group as one write: a single write, or uploads to one bucket. */
function asOne(group: readonly Write[]): Write {
  const [first, ...others] = group
  if (first === undefined) throw new RangeError('a group has no write')
  if (others.length === 0 || !addsItems(first)) return first
  return { ...first, input: [first.input[0], joinItems(group.filter(addsItems))] }
}

function applyInSavepoint(db: DatabaseSync, applyWrite: ApplyWrite, write: Write): Outcome<Output> {
  db.exec('SAVEPOINT write')
  try {
    const output = applyWrite(write)
    db.exec('RELEASE write')
    return { output }
  } catch (error) {
    if (endsTransaction(error) || !db.isTransaction) throw error
    db.exec('ROLLBACK TO write; RELEASE write')
    return { error: asFault(error) }
  }
}

/** The buffers of the files' bytes in a write, each once: the writer thread takes them over, and copies everything else. */
export function buffersOf(write: Write): readonly ArrayBuffer[] {
  if (hasAddedItems(write)) {
    const buffers = new Set<ArrayBuffer>()
    for (const { bytes } of write.input[1]) if (bytes !== null) buffers.add(bytes.buffer)
    return [...buffers]
  }
  const bytes = isKind(write, 'finishUpload') ? write.input[1].bytes : null
  return bytes === null ? [] : [bytes.buffer]
}

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
 * database. A long checkpoint uses a core without a break, during which requests on a busy core wait, so
 * checkpoints are short. But each one needs two more syncs, for which uploads wait. So the slower the syncs of the disk are, the rarer are
 * checkpoints.
 */
export function adaptCheckpoints(db: DatabaseSync): (commitSeconds: number) => void {
  const totalChanges = db.prepare('SELECT total_changes()')
  let changed = 0
  let fastest = Number.POSITIVE_INFINITY
  let observed = 0
  const set = (pages: number) => db.exec(`PRAGMA wal_autocheckpoint = ${pages}`)

  set(maxInterval)
  return (commitSeconds) => {
    const before = changed
    changed = integer(one(totalChanges) ?? [], 0)
    // A commit that changes nothing needs no sync.
    if (changed === before) return
    fastest = Math.min(fastest, commitSeconds)
    observed += 1
    if (observed < observedCommits) return
    set(Math.max(minInterval, Math.min(maxInterval, Math.round(fastest * pagesPerSecond))))
    fastest = Number.POSITIVE_INFINITY
    observed = 0
  }
}
