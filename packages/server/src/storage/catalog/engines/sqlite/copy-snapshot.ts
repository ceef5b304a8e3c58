import { statSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as sleep } from 'node:timers/promises'
import { ExplainedError } from '../../../../core/faults.ts'
import type { ItemId } from '../../../../core/ids.ts'
import { creationSettings } from '../../../sqlite.ts'
import { bucketIds, correctBucket } from '../../checks/bucket-counters.ts'
import type { MissingRows } from '../../checks/inspection.ts'
import { rebuildLabels } from '../../items/labels.ts'
import { isTrash } from '../../items/trash.ts'
import { integer, text } from '../../statements.ts'
import { isUnreadable, itemIds, unlessUnreadable } from './damage.ts'
import { all, createRun, one, readTimeout } from './sqlite-database.ts'

/** Rows of `items` that one transaction reads. Each transaction takes some milliseconds. */
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
 * 1. The rows of `items` and `contents` are copied in chunks. A transaction reads a chunk into memory.
 *    It ends before the chunk is written to the target, because the write may wait for the disk.
 * 2. The last transaction copies the items that were added or edited since, removes those that were deleted since, and copies
 *    all other tables. Its snapshot is the moment of the copy.
 *
 * SQLite's `backup` would start again whenever another connection writes. `VACUUM INTO` would read everything in one
 * transaction.
 *
 * Rows of items, and their bytes, on pages that cannot be read are taken from `earlier`, the file of an earlier copy, or left out. Events
 * on such pages are left out. Resolves with what is missing, apart from bytes.
 */
export async function copySnapshot(
  source: string,
  target: string,
  earlier: string | null = null,
): Promise<MissingRows> {
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
    // If a page of what is derived from other rows cannot be read, the last transaction is rolled back and repeated without it.
    db.exec('PRAGMA main.journal_mode = MEMORY')
    let hasDerived = true
    let hasLabels = false
    const copyRest = () => {
      db.exec('BEGIN')
      // First, because a repetition must not pass by items that it has rolled back.
      for (const table of namesOf(db, 'table'))
        if (!notCopiedWhole.has(table) && (hasDerived || !derived.has(table))) copyTable(db, table)
      hasLabels = all(db.prepare('SELECT 1 FROM source.labels LIMIT 1')).length > 0
      items.copyAdded()
      items.copyEdited()
      items.removeDeleted()
      contents.copyAdded()
      events.copyAdded()
      // The last ids that AUTOINCREMENT used, so that the ids of deleted rows are not reused.
      db.exec('DELETE FROM sqlite_sequence; INSERT INTO sqlite_sequence SELECT * FROM source.sqlite_sequence')
      db.exec('UPDATE main.buckets SET changes_start = revision')
      db.exec('UPDATE main.webhooks SET position = NULL, pending = NULL, owner = NULL')
      const lost = items.lost()
      db.exec('COMMIT')
      return lost
    }
    let lost: readonly ItemId[] | null = null
    while (lost === null) {
      try {
        lost = copyRest()
      } catch (error) {
        if (db.isTransaction) db.exec('ROLLBACK')
        if (!(error instanceof UnreadableTable) || !derived.has(error.table)) throw error
        hasDerived = false
      }
    }
    const unread = items.copyById(lost)
    const missing = unlessUnreadable(
      () => completeFrom(db, earlier, unread),
      () => unread,
    )
    contents.removeDeleted()
    createAll(db, 'index')
    if (hasLabels) rebuildAllLabels(db)
    if (unread.length > 0 || !hasDerived) recountAll(db)
    copyPragmas(db)
    return { items: missing, hasLostEvents: events.hasLost() }
  } catch (error) {
    throw isUnreadable(error) ? new UnreadableTable('items or contents', error) : error
  } finally {
    db.close()
  }
}

/** A table whose rows name each other, or that has no other copy of its rows. The whole backup fails. */
class UnreadableTable extends ExplainedError {
  override readonly name = 'UnreadableTable'
  readonly table: string
  constructor(table: string, cause: unknown) {
    super(
      `the table ${table} of the catalog cannot be read (${String(cause)}). Restore an earlier backup with mediabucket restore.`,
      { cause },
    )
    this.table = table
  }
}

/** The version of the schema, and what the file is. */
function copyPragmas(db: DatabaseSync): void {
  for (const name of ['user_version', 'application_id'])
    db.exec(`PRAGMA main.${name} = ${integer(one(db.prepare(`PRAGMA source.${name}`)) ?? [], 0)}`)
}

function copyTable(db: DatabaseSync, table: string): void {
  unlessUnreadable<unknown>(
    () => db.exec(`INSERT INTO main."${table}" SELECT * FROM source."${table}"`),
    (error) => {
      throw new UnreadableTable(table, error)
    },
  )
}

/** Corrects the counters of all buckets. */
function recountAll(db: DatabaseSync): void {
  const run = createRun(db)
  db.exec('BEGIN')
  for (const id of run(bucketIds())) run(correctBucket(id, 'sqlite'))
  db.exec('COMMIT')
}

/** One transaction with many rows would be longer than any other of a backup, and it would read the source. */
function rebuildAllLabels(db: DatabaseSync): void {
  const run = createRun(db)
  db.exec('BEGIN')
  for (const id of run(bucketIds())) if (!isTrash(id)) run(rebuildLabels(id))
  db.exec('COMMIT')
}

/** Takes the lost items, and bytes that could not be read, from an earlier copy of the same version. Returns what it does not have. */
function completeFrom(db: DatabaseSync, earlier: string | null, lost: readonly ItemId[]): readonly ItemId[] {
  const missing = `SELECT content_id FROM main.items WHERE content_id IS NOT NULL
    AND content_id NOT IN (SELECT id FROM main.contents)`
  if (earlier === null || (lost.length === 0 && !one(db.prepare(`${missing} LIMIT 1`)))) return lost
  db.prepare('ATTACH ? AS earlier').run(earlier)
  const versionOf = (schema: string) => integer(one(db.prepare(`PRAGMA ${schema}.user_version`)) ?? [], 0)
  if (versionOf('earlier') !== versionOf('source')) return lost
  const copyItem = db.prepare('INSERT OR IGNORE INTO main.items SELECT * FROM earlier.items WHERE id = ?')
  const rest = lost.filter((id) => Number(copyItem.run(id).changes) === 0)
  db.exec(`INSERT INTO main.contents SELECT contents.* FROM earlier.contents
    JOIN earlier.items AS was ON was.content_id = contents.id
    JOIN main.items AS now ON now.id = was.id AND now.sha256 = was.sha256 AND now.content_id = was.content_id
    WHERE contents.id IN (${missing})`)
  return rest
}

type Copy = (...values: readonly (number | string)[]) => number

/**
 * Returns a function that prepares a copy of rows of one table through a table in memory: the copy returns their number. Its arguments are
 * the parameters of `condition`.
 */
function prepareCopy(db: DatabaseSync, table: string): (condition: string) => Copy {
  db.exec(`CREATE TABLE chunk."${table}" AS SELECT * FROM source."${table}" WHERE 0`)
  // An item that was deleted to the trash, or restored, replaces its earlier row.
  const write = db.prepare(`INSERT OR REPLACE INTO main."${table}" SELECT * FROM chunk."${table}"`)
  const clear = db.prepare(`DELETE FROM chunk."${table}"`)
  return (condition) => {
    const read = db.prepare(`INSERT INTO chunk."${table}" SELECT * FROM source."${table}" WHERE ${condition}`)
    return (...values) => {
      // Rows that were read before an unreadable page may still be there.
      clear.run()
      const { changes } = read.run(...values)
      write.run()
      return Number(changes)
    }
  }
}

function prepareItems(db: DatabaseSync, afterChunk: () => Promise<void>) {
  const buckets = db.prepare('SELECT id FROM source.buckets ORDER BY id')
  const last = db.prepare('SELECT coalesce(max(seq), -1) FROM main.items WHERE bucket_id = ?')
  const prepare = prepareCopy(db, 'items')
  // New rows have higher sequence numbers than all earlier rows, because numbers are never reused.
  const copy = prepare('bucket_id = ? AND seq > ? ORDER BY seq LIMIT ?')
  const copyOne = prepare('bucket_id = ? AND seq = ?')
  const copyById = prepare('id = ?')
  // From an index, which has other pages than the rows.
  const seqs = db.prepare(`SELECT seq FROM source.items INDEXED BY items_by_kind
    WHERE bucket_id = ? AND seq > ? ORDER BY seq LIMIT ?`)
  const lostIds = db.prepare(`${itemIds('source')} WHERE id NOT IN (SELECT id FROM main.items)`)
  const total = db.prepare('SELECT total FROM source.buckets WHERE id = ?')
  const removeDeleted = db.prepare(`DELETE FROM main.items WHERE bucket_id = ?
    AND NOT EXISTS (SELECT 1 FROM source.items AS now WHERE now.bucket_id = items.bucket_id AND now.seq = items.seq)`)
  const revisions = new Map(
    all(db.prepare('SELECT id, revision FROM source.buckets')).map((row) => [
      integer(row, 0),
      integer(row, 1),
    ]),
  )
  const edited = 'FROM source.items AS now WHERE now.bucket_id = ? AND now.edited > ?'
  const countUncopied = db.prepare(`SELECT count(*) ${edited} AND NOT EXISTS
    (SELECT 1 FROM main.items AS copy WHERE copy.bucket_id = now.bucket_id AND copy.seq = now.seq)`)
  const copyEdited = db.prepare(`INSERT OR REPLACE INTO main.items SELECT now.* ${edited}`)
  /** How many items of each bucket were copied. */
  const counts = new Map<number, number>()
  /** The last number of each bucket that was reached, also by a row that cannot be read. */
  const reached = new Map<number, number>()
  let hasLost = false

  /** Copies the items one by one, and passes by those that cannot be read. Returns how many it has reached. */
  function copySingly(bucket: number, after: number, limit: number): number {
    const found = all(seqs, bucket, after, limit)
    for (const row of found) {
      const seq = integer(row, 0)
      unlessUnreadable(
        () => copyOne(bucket, seq),
        () => {
          hasLost = true
          return 0
        },
      )
      reached.set(bucket, seq)
    }
    return found.length
  }

  function copyFrom(bucket: number, limit: number): number {
    const after = Math.max(integer(one(last, bucket) ?? [], 0), reached.get(bucket) ?? -1)
    const copied = unlessUnreadable(
      () => copy(bucket, after, limit),
      () => copySingly(bucket, after, limit),
    )
    counts.set(bucket, copied + (counts.get(bucket) ?? 0))
    return copied
  }
  const bucketIds = () => all(buckets).map((row) => integer(row, 0))
  return {
    /** A row in an inner page of the table is found by its id only. Returns the ids of rows that cannot be read. */
    copyById: (ids: readonly ItemId[]): readonly ItemId[] =>
      ids.filter((id) =>
        unlessUnreadable(
          () => copyById(id) < 0,
          () => true,
        ),
      ),
    /** Items whose rows were not found by their numbers. To be called in the last transaction. */
    lost: (): readonly ItemId[] => (hasLost ? all(lostIds).map((row) => text(row, 0) as ItemId) : []),
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
  const copy = prepareCopy(db, 'audit_events')('id > ? ORDER BY id LIMIT ?')
  const next = db.prepare('SELECT * FROM source.audit_events WHERE id > ? ORDER BY id LIMIT 1')
  /** The last number that was passed by, because the event after it cannot be read. */
  let passed = 0
  let hasLost = false

  const canRead = (after: number): boolean =>
    unlessUnreadable(
      () => all(next, after).length >= 0,
      () => false,
    )

  /** The first number after this one whose next event can be read. No index has all numbers, so it is found by halving. */
  function passBy(after: number, error: unknown): number {
    let step = 1
    while (!canRead(after + step)) {
      step *= 2
      // Not even the end of the table can be read.
      if (after + step > Number.MAX_SAFE_INTEGER) throw new UnreadableTable('audit_events', error)
    }
    let [unreadable, readable] = [after, after + step]
    while (readable - unreadable > 1) {
      const middle = Math.floor((unreadable + readable) / 2)
      if (canRead(middle)) readable = middle
      else unreadable = middle
    }
    return readable
  }

  /** Copies the events one by one, and passes by those that cannot be read. Returns how many it has copied. */
  function copySingly(after: number): number {
    let count = 0
    for (let at = after; count < chunk; at = Math.max(passed, integer(one(last) ?? [], 0))) {
      const from = at
      const copied = unlessUnreadable(
        () => copy(from, 1),
        (error) => {
          hasLost = true
          passed = passBy(from, error)
          return null
        },
      )
      if (copied === 0) break
      count += copied ?? 0
    }
    return count
  }

  function copyChunk(): number {
    const after = Math.max(passed, integer(one(last) ?? [], 0))
    return unlessUnreadable(
      () => copy(after, chunk),
      () => copySingly(after),
    )
  }

  return {
    hasLost: () => hasLost,
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

/** The same for the table `contents` as `prepareItems` for the table `items`. */
function prepareContents(db: DatabaseSync, afterChunk: () => Promise<void>) {
  const last = db.prepare('SELECT coalesce(max(id), 0) FROM main.contents')
  const prepare = prepareCopy(db, 'contents')
  const copy = prepare('id > ? ORDER BY id LIMIT ?')
  const copyOne = prepare('id = ?')
  const wanted = db.prepare(
    `SELECT content_id FROM main.items WHERE content_id > ? ORDER BY content_id LIMIT ${contentsChunk}`,
  )
  const removeDeleted = db.prepare(`DELETE FROM main.contents
    WHERE id NOT IN (SELECT content_id FROM main.items WHERE content_id IS NOT NULL)`)
  /** The last id that was reached, also by bytes that cannot be read. */
  let reached = 0

  /** Copies the bytes of the copied items one by one, and passes by those that cannot be read. Returns how many it has reached. */
  function copySingly(after: number): number {
    const found = all(wanted, after)
    for (const row of found) {
      reached = integer(row, 0)
      unlessUnreadable(
        () => copyOne(reached),
        () => 0,
      )
    }
    return found.length
  }

  function copyChunk(): number {
    const after = Math.max(reached, integer(one(last) ?? [], 0))
    return unlessUnreadable(
      () => copy(after, contentsChunk),
      () => copySingly(after),
    )
  }

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

/**
 * Tables that are copied in chunks, that are built again from the items, or that are not copied: the cursors of a feed are not valid after a
 * restore.
 */
const notCopiedWhole: ReadonlySet<string> = new Set([
  ...['items', 'contents', 'audit_events'],
  ...['labels', 'item_labels', 'changes'],
])

/** Tables that `recountAll` writes. */
const derived: ReadonlySet<string> = new Set(['ranks', 'item_names', 'expired_counts', 'keyed_counts'])

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
