import { statSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as sleep } from 'node:timers/promises'
import { creationSettings } from '../../sqlite/creation-settings.ts'
import { integer, text } from '../rows.ts'
import { readTimeout } from './connection.ts'
import { all, one } from './rows.ts'

/** Rows of `media` that one transaction reads. Each transaction takes some milliseconds. */
const chunk = 2_000
/** Rows of `contents` that one transaction reads. */
const contentsChunk = 50
/** If the write-ahead log is longer, it is truncated between two reads. Bytes. */
const maxLogSize = 32 * 1024 * 1024
/** Milliseconds that a truncation waits until other connections finish their reads. Writers wait during this time. */
const truncationTimeout = 100
/** Milliseconds until the next truncation if this one had to stop waiting. */
const truncationInterval = 5_000
/** The last transaction begins after a pass that copied at most this many rows. */
const lastChunk = 500
/** Each pass copies the rows that were added during the previous pass. The limit is for uploads that are faster than the copy. */
const maxPasses = 10
/** Milliseconds between two reads. */
const pause = 2

/**
 * Copies the catalog `source` as of one moment into the new file `target`. The target is not synced.
 *
 * While a transaction reads the catalog, SQLite cannot reset the write-ahead log, and the log grows with each upload. So
 * most rows are copied in short transactions:
 * 1. The rows of `media` and `contents` are copied in chunks. A transaction reads a chunk into memory.
 *    It ends before the chunk is written to the target, because the write may wait for the disk.
 * 2. The last transaction copies the items that were added or edited since, removes those that were deleted since, and copies
 *    all other tables. Its snapshot is the moment of the copy.
 *
 * SQLite's `backup` would start again whenever another connection writes. `VACUUM INTO` would read everything in one
 * transaction.
 */
export async function copySnapshot(source: string, target: string): Promise<void> {
  const db = new DatabaseSync(target, {
    returnArrays: true,
    timeout: readTimeout,
    enableForeignKeyConstraints: false,
  })
  try {
    db.exec(`${creationSettings}; PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF`)
    db.prepare('ATTACH ? AS source').run(source)
    db.exec("ATTACH ':memory:' AS chunk")
    createAll(db, 'table')
    const limitLog = prepareLogLimit(db, source)
    const afterChunk = async () => {
      limitLog()
      await sleep(pause)
    }
    const items = prepareItems(db, afterChunk)
    const contents = prepareContents(db, afterChunk)
    const events = prepareEvents(db, afterChunk)
    for (let pass = 0; pass < maxPasses; pass += 1) {
      const copied =
        (await items.copyInChunks()) + (await contents.copyInChunks()) + (await events.copyInChunks())
      if (copied <= lastChunk) break
    }
    limitLog()
    db.exec('BEGIN')
    items.copyAdded()
    items.copyEdited()
    items.removeDeleted()
    contents.copyAdded()
    events.copyAdded()
    for (const table of namesOf(db, 'table'))
      if (!copiedInChunks.has(table)) db.exec(`INSERT INTO main."${table}" SELECT * FROM source."${table}"`)
    // The last ids that AUTOINCREMENT used, so that the ids of deleted rows are not reused.
    db.exec('DELETE FROM sqlite_sequence; INSERT INTO sqlite_sequence SELECT * FROM source.sqlite_sequence')
    db.exec('COMMIT')
    contents.removeDeleted()
    createAll(db, 'index')
    for (const name of ['user_version', 'application_id'])
      db.exec(`PRAGMA main.${name} = ${integer(one(db.prepare(`PRAGMA source.${name}`)) ?? [], 0)}`)
  } finally {
    db.close()
  }
}

/**
 * Returns a function that copies the rows of one table through a table in memory, and returns their number. Its arguments are
 * the parameters of `condition` and the maximum number of rows.
 */
function prepareCopy(db: DatabaseSync, table: string, condition: string): (...values: number[]) => number {
  db.exec(`CREATE TABLE chunk."${table}" AS SELECT * FROM source."${table}" WHERE 0`)
  const read = db.prepare(
    `INSERT INTO chunk."${table}" SELECT * FROM source."${table}" WHERE ${condition} LIMIT ?`,
  )
  // An item that was deleted to the trash, or restored, replaces its earlier row.
  const write = db.prepare(`INSERT OR REPLACE INTO main."${table}" SELECT * FROM chunk."${table}"`)
  const clear = db.prepare(`DELETE FROM chunk."${table}"`)
  return (...values) => {
    const { changes } = read.run(...values)
    write.run()
    clear.run()
    return Number(changes)
  }
}

function prepareItems(db: DatabaseSync, afterChunk: () => Promise<void>) {
  const buckets = db.prepare('SELECT id FROM source.buckets ORDER BY id')
  const last = db.prepare('SELECT coalesce(max(seq), -1) FROM main.media WHERE bucket_id = ?')
  // New rows have higher sequence numbers than all earlier rows, because numbers are never reused.
  const copy = prepareCopy(db, 'media', 'bucket_id = ? AND seq > ? ORDER BY seq')
  const total = db.prepare('SELECT total FROM source.buckets WHERE id = ?')
  const removeDeleted = db.prepare(`DELETE FROM main.media WHERE bucket_id = ?
    AND NOT EXISTS (SELECT 1 FROM source.media AS now WHERE now.bucket_id = media.bucket_id AND now.seq = media.seq)`)
  const revisions = new Map(
    all(db.prepare('SELECT id, revision FROM source.buckets')).map((row) => [
      integer(row, 0),
      integer(row, 1),
    ]),
  )
  const edited = 'FROM source.media AS now WHERE now.bucket_id = ? AND now.edited > ?'
  const countUncopied = db.prepare(`SELECT count(*) ${edited} AND NOT EXISTS
    (SELECT 1 FROM main.media AS copy WHERE copy.bucket_id = now.bucket_id AND copy.seq = now.seq)`)
  const copyEdited = db.prepare(`INSERT OR REPLACE INTO main.media SELECT now.* ${edited}`)
  /** How many items of each bucket were copied. */
  const counts = new Map<number, number>()
  function copyFrom(bucket: number, limit: number): number {
    const copied = copy(bucket, integer(one(last, bucket) ?? [], 0), limit)
    counts.set(bucket, copied + (counts.get(bucket) ?? 0))
    return copied
  }
  const bucketIds = () => all(buckets).map((row) => integer(row, 0))
  return {
    /** Copies the items that were added since the last call, and returns how many. */
    async copyInChunks(): Promise<number> {
      let total = 0
      for (const bucket of bucketIds()) {
        for (let copied = chunk; copied === chunk; total += copied) {
          copied = copyFrom(bucket, chunk)
          if (copied > 0) await afterChunk()
        }
      }
      return total
    },
    /** The same as `copyInChunks`, but in the transaction of the caller. */
    copyAdded(): void {
      for (const bucket of bucketIds()) while (copyFrom(bucket, chunk) === chunk);
    },
    /** Copies the items whose rows changed since `prepareItems`. */
    copyEdited(): void {
      for (const bucket of bucketIds()) {
        const since = revisions.get(bucket) ?? -1
        const uncopied = integer(one(countUncopied, bucket, since) ?? [], 0)
        counts.set(bucket, uncopied + (counts.get(bucket) ?? 0))
        copyEdited.run(bucket, since)
      }
    },
    /** Compares the items only of buckets whose number of items differs, because the comparison reads all items of a bucket. */
    removeDeleted(): void {
      for (const [bucket, count] of counts)
        if (count !== integer(one(total, bucket) ?? [0], 0)) removeDeleted.run(bucket)
    },
  }
}

/** Copies the audit log in the order of its numbers. Old events that the service removes during the copy stay in the copy. */
function prepareEvents(db: DatabaseSync, afterChunk: () => Promise<void>) {
  const last = db.prepare('SELECT coalesce(max(id), 0) FROM main.audit_events')
  const copy = prepareCopy(db, 'audit_events', 'id > ? ORDER BY id')
  const copyChunk = (): number => copy(integer(one(last) ?? [], 0), chunk)
  return {
    async copyInChunks(): Promise<number> {
      let total = 0
      for (let copied = chunk; copied === chunk; total += copied) {
        copied = copyChunk()
        if (copied > 0) await afterChunk()
      }
      return total
    },
    copyAdded(): void {
      while (copyChunk() === chunk);
    },
  }
}

/** The same for the table `contents` as `prepareItems` for the table `media`. */
function prepareContents(db: DatabaseSync, afterChunk: () => Promise<void>) {
  const last = db.prepare('SELECT coalesce(max(id), 0) FROM main.contents')
  const copy = prepareCopy(db, 'contents', 'id > ? ORDER BY id')
  const removeDeleted = db.prepare(`DELETE FROM main.contents
    WHERE id NOT IN (SELECT content_id FROM main.media WHERE content_id IS NOT NULL)`)
  const copyChunk = (): number => copy(integer(one(last) ?? [], 0), contentsChunk)
  return {
    async copyInChunks(): Promise<number> {
      let total = 0
      for (let copied = contentsChunk; copied === contentsChunk; total += copied) {
        copied = copyChunk()
        if (copied > 0) await afterChunk()
      }
      return total
    },
    copyAdded(): void {
      while (copyChunk() === contentsChunk);
    },
    /** Removes the rows of `contents` whose items are not in the target. Does not read the source. */
    removeDeleted: () => void removeDeleted.run(),
  }
}

/**
 * Returns a function that truncates the write-ahead log if it is too long. The checkpoints of the server cannot reset the log
 * while this copy reads. Writers wait during the truncation, as they do during their own checkpoints.
 */
function prepareLogLimit(db: DatabaseSync, source: string): () => void {
  let nextAttempt = 0
  return () => {
    const size = statSync(`${source}-wal`, { throwIfNoEntry: false })?.size ?? 0
    if (size <= maxLogSize || performance.now() < nextAttempt) return
    db.exec(`PRAGMA busy_timeout = ${truncationTimeout}`)
    const isBusy = integer(one(db.prepare('PRAGMA source.wal_checkpoint(TRUNCATE)')) ?? [], 0) !== 0
    db.exec(`PRAGMA busy_timeout = ${readTimeout}`)
    if (isBusy) nextAttempt = performance.now() + truncationInterval
  }
}

const copiedInChunks: ReadonlySet<string> = new Set(['media', 'contents', 'audit_events'])

type Kind = 'table' | 'index'

/** Omits the tables and indexes that SQLite creates itself. */
const entries = (db: DatabaseSync, kind: Kind) =>
  all(
    db.prepare(`SELECT name, sql FROM source.sqlite_schema
      WHERE type = ? AND sql IS NOT NULL AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY rowid`),
    kind,
  )

const namesOf = (db: DatabaseSync, kind: Kind): string[] => entries(db, kind).map((row) => text(row, 0))

function createAll(db: DatabaseSync, kind: Kind): void {
  for (const row of entries(db, kind)) db.exec(text(row, 1))
}
