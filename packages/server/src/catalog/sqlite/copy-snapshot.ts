import { DatabaseSync } from 'node:sqlite'
import { setTimeout as sleep } from 'node:timers/promises'
import { creationSettings } from '../../sqlite/creation-settings.ts'
import { all, integer, one, text } from './rows.ts'

/** Items, and bytes of items, that are copied in one transaction, which takes some milliseconds. */
const chunk = 2_000
const contentsChunk = 100
/** Rows that may be left for the last transaction. */
const lastChunk = 500
/** A pass copies what was added during the one before. On a busy machine, uploads may be faster than the copy. */
const maxPasses = 10
/** Milliseconds between two of these transactions. */
const pause = 2
/** Milliseconds that a read waits, as in catalog.ts. */
const readTimeout = 5_000

/**
 * Copies the catalog `source` as of one moment into the new file `target`, which is not synced. While a transaction reads a
 * catalog, its write-ahead log cannot start again and grows with each upload. So the rows and bytes of items, which never change,
 * are copied in short transactions first. The last transaction copies the items that were added since, removes those that were
 * deleted since, and copies all other tables: its snapshot is the moment of the copy.
 *
 * Not SQLite's `backup`, which starts again whenever another connection writes, and not `VACUUM INTO`, which reads everything in
 * one transaction.
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
    createAll(db, 'table')
    const items = prepareItems(db)
    const contents = prepareContents(db)
    for (let pass = 0; pass < maxPasses; pass += 1) {
      const copied = (await items.copyInChunks()) + (await contents.copyInChunks())
      if (copied <= lastChunk) break
    }
    db.exec('BEGIN')
    items.copyAdded()
    items.removeDeleted()
    contents.copyAdded()
    for (const table of namesOf(db, 'table'))
      if (!copiedInChunks.has(table)) db.exec(`INSERT INTO main."${table}" SELECT * FROM source."${table}"`)
    // The ids that were used last, also those of deleted rows.
    db.exec('DELETE FROM sqlite_sequence; INSERT INTO sqlite_sequence SELECT * FROM source.sqlite_sequence')
    db.exec('COMMIT')
    contents.removeDeleted()
    createAll(db, 'index')
    createAll(db, 'trigger')
    for (const name of ['user_version', 'application_id'])
      db.exec(`PRAGMA main.${name} = ${integer(one(db.prepare(`PRAGMA source.${name}`)) ?? [], 0)}`)
  } finally {
    db.close()
  }
}

function prepareItems(db: DatabaseSync) {
  const buckets = db.prepare('SELECT id FROM source.buckets ORDER BY id')
  const last = db.prepare('SELECT coalesce(max(seq), -1) FROM main.media WHERE bucket_id = ?')
  // Sequence numbers grow and are never reused.
  const copy = db.prepare(`INSERT INTO main.media SELECT * FROM source.media
    WHERE bucket_id = ? AND seq > ? ORDER BY seq LIMIT ?`)
  const total = db.prepare('SELECT total FROM source.buckets WHERE id = ?')
  const removeDeleted = db.prepare(`DELETE FROM main.media WHERE bucket_id = ?
    AND NOT EXISTS (SELECT 1 FROM source.media AS now WHERE now.bucket_id = media.bucket_id AND now.seq = media.seq)`)
  /** Copied items of each bucket. */
  const counts = new Map<number, number>()
  function copyFrom(bucket: number, limit: number): number {
    const copied = Number(copy.run(bucket, integer(one(last, bucket) ?? [], 0), limit).changes)
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
          if (copied > 0) await sleep(pause)
        }
      }
      return total
    },
    /** The same in the transaction of the caller. */
    copyAdded(): void {
      for (const bucket of bucketIds()) copyFrom(bucket, -1)
    },
    /** Compares only the buckets that have lost items: that reads all their items. */
    removeDeleted(): void {
      for (const [bucket, count] of counts)
        if (count !== integer(one(total, bucket) ?? [0], 0)) removeDeleted.run(bucket)
    },
  }
}

/** As prepareItems. */
function prepareContents(db: DatabaseSync) {
  const last = db.prepare('SELECT coalesce(max(id), 0) FROM main.contents')
  const copy = db.prepare(`INSERT INTO main.contents SELECT * FROM source.contents
    WHERE id > ? ORDER BY id LIMIT ?`)
  const removeDeleted = db.prepare(`DELETE FROM main.contents
    WHERE id NOT IN (SELECT content_id FROM main.media WHERE content_id IS NOT NULL)`)
  const copyUpTo = (limit: number): number => Number(copy.run(integer(one(last) ?? [], 0), limit).changes)
  return {
    async copyInChunks(): Promise<number> {
      let total = 0
      for (let copied = contentsChunk; copied === contentsChunk; total += copied) {
        copied = copyUpTo(contentsChunk)
        if (copied > 0) await sleep(pause)
      }
      return total
    },
    copyAdded: () => void copyUpTo(-1),
    /** Removes the bytes of items that are not in the copy; reads nothing of the source. */
    removeDeleted: () => void removeDeleted.run(),
  }
}

const copiedInChunks: ReadonlySet<string> = new Set(['media', 'contents'])

type Kind = 'table' | 'index' | 'trigger'

/** SQLite creates the tables and indexes without SQL text by itself. */
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
