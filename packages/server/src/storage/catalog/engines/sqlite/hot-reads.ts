import type { DatabaseSync } from 'node:sqlite'
import { TickBatch } from '../../../../core/tasks.ts'
import { findTokenGrant } from '../../access/service-tokens.ts'
import { findKey } from '../../objects/object-keys.ts'
import type { BucketId, TokenId } from '../../records.ts'
import { integer } from '../../statements.ts'
import { type createRun, one, prepareSnapshots, withFaults } from './sqlite-database.ts'

// Reads that many requests wait for: reads of one tick share a transaction, and rows are used again until the database changes.

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

interface Pending<Key, Value> {
  readonly key: Key
  readonly resolve: (value: Value) => void
  readonly reject: (error: unknown) => void
}

/** Runs all reads of a batch: calls `readEach` once, with the function that reads one value. */
type ReadTogether<Key, Value> = (readEach: (readOne: (key: Key) => Value) => void) => void

/** Reads that begin in a microtask, together with those that were requested before it. */
export class TickReads<Key, Value> {
  readonly #together: ReadTogether<Key, Value>
  readonly #pending = new TickBatch<Pending<Key, Value>>((all) => this.#readAll(all), queueMicrotask)

  /** If `together` throws, the reads of the batch fail. An error of one read fails no other. */
  constructor(together: ReadTogether<Key, Value>) {
    this.#together = together
  }

  readonly read = (key: Key): Promise<Value> =>
    new Promise((resolve, reject) => this.#pending.add({ key, resolve, reject }))

  /** Runs the pending reads now; to be called before the connection is closed. */
  flush(): void {
    this.#pending.flush()
  }

  #readAll(all: readonly Pending<Key, Value>[]): void {
    try {
      withFaults(() => this.#together((readOne) => readEach(all, readOne)))
    } catch (error) {
      for (const { reject } of all) reject(error)
    }
  }
}

function readEach<Key, Value>(all: readonly Pending<Key, Value>[], readOne: (key: Key) => Value): void {
  for (const { key, resolve, reject } of all)
    try {
      resolve(withFaults(() => readOne(key)))
    } catch (error) {
      reject(error)
    }
}

/**
 * Runs all reads of a batch in one transaction, with a function that `createRead` returns for it. An error of one read can end the transaction,
 * so each read that needs a snapshot begins one if there is none.
 */
export function inOneTransaction<Key, Value>(
  db: DatabaseSync,
  createRead: () => (key: Key) => Value,
): ReadTogether<Key, Value> {
  const snapshots = prepareSnapshots(db)
  return (readAll) => {
    snapshots.begin()
    readAll(createRead())
    snapshots.end()
  }
}

/**
 * Reads whose values stay in memory until the database changes. The version of the database is read once a tick. Values are read as if nothing
 * had expired; a value of which a part has expired is read again.
 */
export class UnchangedReads<Key, Value> extends TickReads<Key, Value | null> {
  constructor(db: DatabaseSync, parts: UnchangedParts<Key, Value>) {
    const read = (key: Key) => parts.read(key, Number.NEGATIVE_INFINITY)
    const rows = createUnchangedRows(db, { ...parts, read })
    const readOne = (key: Key) => {
      const value = rows.read(key)
      const expiry = value && parts.expiryOf(value)
      if (expiry === null) return value
      const now = Date.now()
      return expiry <= now ? parts.read(key, now) : value
    }
    super((readAll) => {
      rows.refresh()
      readAll(readOne)
    })
  }
}

interface UnchangedParts<Key, Value> {
  readonly keyOf: (key: Key) => string
  readonly read: (key: Key, now: number) => Value | null
  /** When the first part expires; null for never. */
  readonly expiryOf: (value: Value) => number | null
  readonly limit?: number
}

/** Objects in memory at most: each has headers of up to 4 KiB. */
const maxObjects = 1_000

/** The reads that requests of the S3 protocol wait for. */
export function createObjectReads(db: DatabaseSync, run: ReturnType<typeof createRun>) {
  const keys = new UnchangedReads(db, {
    keyOf: ({ bucketId, key }: ObjectName) => `${bucketId} ${key}`,
    read: ({ bucketId, key }) => run(findKey(bucketId, key)),
    expiryOf: ({ item }) => item.expiresAt ?? null,
    limit: maxObjects,
  })
  const tokens = new UnchangedReads(db, {
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
