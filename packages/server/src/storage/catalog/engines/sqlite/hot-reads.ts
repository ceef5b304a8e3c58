import type { DatabaseSync } from 'node:sqlite'
import { TickBatch } from '../../../../core/tasks.ts'
import { findTokenGrant } from '../../access/service-tokens.ts'
import { findKey } from '../../objects/object-keys.ts'
import type { BucketId, TokenId } from '../../records.ts'
import { integer } from '../../statements.ts'
import { type createRun, one, prepareSnapshots, withFaults } from './sqlite-database.ts'

// Reads that many requests wait for: those of one tick share a transaction, and rows are used again until the database changes.

interface Pending<Key, Value> {
  readonly key: Key
  readonly resolve: (value: Value) => void
  readonly reject: (error: unknown) => void
}

/**
 * Runs the reads of one tick in one transaction, because taking SQLite's locks costs more than finding a row.
 * The transaction begins after the last of them was requested and ends before any other code runs. If it cannot begin, each read is
 * one of its own.
 */
export function createBatchedReads<Key, Value>(
  db: DatabaseSync,
  /** `isFirst` is true for the first read of a tick. */
  read: (key: Key, isFirst: boolean) => Value,
) {
  const snapshots = prepareSnapshots(db)

  function readAll(batch: readonly Pending<Key, Value>[]): void {
    if (batch.length > 1 && db.isOpen) beginIfPossible()
    for (const [index, { key, resolve, reject }] of batch.entries()) {
      try {
        resolve(read(key, index === 0))
      } catch (error) {
        reject(error)
      }
    }
    if (db.isOpen) snapshots.end()
  }

  function beginIfPossible() {
    try {
      snapshots.begin()
    } catch {
      // The reads report what is wrong. An error here would end the process.
    }
  }

  const pending = new TickBatch(readAll, queueMicrotask)
  return {
    read: (key: Key): Promise<Value> =>
      new Promise((resolve, reject) => pending.add({ key, resolve, reject })),
    /** Runs the pending reads now; to be called before the connection is closed. */
    flush: () => pending.flush(),
  }
}

/** Rows of one kind in memory. Above this number, all are read again. */
const maxRows = 10_000

/** Rows of one kind, each read once until the database changes. */
export interface UnchangedRows<Key, Value> {
  /** Discards the rows if the database has changed. Call it in each tick before the first read. */
  refresh(): void
  /** Whether the row is in memory. */
  has(key: Key): boolean
  /** Null if there is no such row. */
  read(key: Key): Value | null
}

/**
 * SQLite increments `data_version` of a connection when another one, also of another process, has committed. So a row is never
 * older than the last `refresh`. The connection itself must not write.
 */
export function createUnchangedRows<Key, Value>(
  db: DatabaseSync,
  {
    keyOf,
    read,
    limit = maxRows,
  }: {
    readonly keyOf: (key: Key) => string
    readonly read: (key: Key) => Value | null
    readonly limit?: number
  },
): UnchangedRows<Key, Value> {
  const dataVersion = db.prepare('PRAGMA data_version')
  // Replaced, not cleared: V8 keeps the rows of a cleared Map in memory (core/slab.ts).
  let rows = new Map<string, Value>()
  let version: number | null = null

  return {
    refresh() {
      const before = version
      // If the read fails, no row of an earlier version is used.
      version = null
      version = integer(one(dataVersion) ?? [], 0)
      if (version !== before || rows.size >= limit) rows = new Map()
    },
    has: (key) => version !== null && rows.has(keyOf(key)),
    read(key) {
      if (version === null) return read(key)
      const name = keyOf(key)
      const known = rows.get(name)
      if (known !== undefined) return known
      const row = read(key)
      if (row !== null) rows.set(name, row)
      return row
    },
  }
}

/**
 * Batched reads whose values stay in memory until the database changes. They are read as if nothing had expired; a value of which a part has
 * expired is read again.
 */
export function createUnchangedReads<Key, Value>(
  db: DatabaseSync,
  parts: {
    readonly keyOf: (key: Key) => string
    readonly read: (key: Key, now: number) => Value | null
    /** When the first part expires; null for never. */
    readonly expiryOf: (value: Value) => number | null
    readonly limit?: number
  },
) {
  const { read, expiryOf } = parts
  const rows = createUnchangedRows(db, {
    ...parts,
    read: (key: Key) => read(key, Number.NEGATIVE_INFINITY),
  })
  return createBatchedReads(db, (key: Key, isFirst) =>
    withFaults(() => {
      if (isFirst) rows.refresh()
      const value = rows.read(key)
      const expiry = value && expiryOf(value)
      if (expiry === null) return value
      const now = Date.now()
      return expiry <= now ? read(key, now) : value
    }),
  )
}

/** Objects in memory at most: each has headers of up to 4 KiB. */
const maxObjects = 1_000

/** The reads that requests of the S3 protocol wait for. */
export function createObjectReads(db: DatabaseSync, run: ReturnType<typeof createRun>) {
  const keys = createUnchangedReads(db, {
    keyOf: ({ bucketId, key }: ObjectName) => `${bucketId} ${key}`,
    read: ({ bucketId, key }) => run(findKey(bucketId, key)),
    expiryOf: ({ item }) => item.expiresAt ?? null,
    limit: maxObjects,
  })
  const tokens = createUnchangedReads(db, {
    keyOf: ({ id, bucket }: TokenName) => `${id} ${bucket ?? ''}`,
    read: ({ id, bucket }, now) => run(findTokenGrant(id, bucket, now)),
    expiryOf: ({ ofBucket }) => ofBucket?.nextExpiry ?? null,
  })
  return {
    findKey: (bucketId: BucketId, key: string) => keys.read({ bucketId, key }),
    findTokenGrant: (id: TokenId, bucket: string | null) => tokens.read({ id, bucket }),
    flush(): void {
      keys.flush()
      tokens.flush()
    },
  }
}

interface ObjectName {
  readonly bucketId: BucketId
  readonly key: string
}

interface TokenName {
  readonly id: TokenId
  readonly bucket: string | null
}
