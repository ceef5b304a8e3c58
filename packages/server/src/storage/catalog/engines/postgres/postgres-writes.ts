import { bucketDeleted } from '../../../../core/faults.ts'
import type { ItemId } from '../../../../core/ids.ts'
import { type Amount, requireWithinQuota } from '../../../../core/quotas.ts'
import { dayOf } from '../../../../core/times.ts'
import { isPictured } from '../../../../core/variants.ts'
import { uploadEvents } from '../../audit/audit-events.ts'
import { bucketColumnCount, bucketColumns, bucketOf, isNotDeleted } from '../../buckets.ts'
import { enterCounts, leaveCounts } from '../../items/expired-items.ts'
import { refreshNames } from '../../items/item-names.ts'
import { isLive } from '../../items/items.ts'
import { indexRows, type LabelledRow, labelledRow, unindexRows } from '../../items/labels.ts'
import { expiryOf, isTrash, refreshExpiry, trashOf } from '../../items/trash.ts'
import { bucketKeyOf, type Output, type Write, type WriteKind, workOf } from '../../nouns.ts'
import type { AddedItem, Bucket, BucketId, RemovedItems } from '../../records.ts'
import { type EngineSteps, integer, integerOrNull, type Row, text } from '../../statements.ts'
import { openUsageDay } from '../../usage.ts'
import { appendStatement, appendValues } from './item-arrays.ts'
import { recordEvents } from './postgres-audit-log.ts'
import { runWork, type Session } from './session.ts'

/** Applies a write in a transaction that has locked its bucket. */
export const applyWrite = <K extends WriteKind>(
  transaction: Transaction,
  write: Write<K>,
): Promise<Output<K>> => runWork(transaction.session, workOf(write), engineOf(transaction))

const engineOf = (transaction: Transaction): EngineSteps => {
  const { session, buckets } = transaction
  return {
    record: (events) => recordEvents(session, events),
    requireRoom: buckets.requireRoom,
    requireReserved(bucketId, reserved) {
      const bucket = buckets.getKept(bucketId)
      requireWithinQuota(bucket, bucket, reserved)
    },
    async reserve(bucketId, { items, bytes }) {
      await session.run(
        `UPDATE buckets SET reserved_items = reserved_items + $1, reserved_bytes = reserved_bytes + $2
        WHERE id = $3`,
        ...[items, bytes, bucketId],
      )
      buckets.add(bucketId, { reservedItems: items, reservedBytes: bytes })
    },
    append: async (bucketId, items) => void (await appendItems(transaction, bucketId, items)),
    hasTrash: (bucketId) => trashDaysOf(transaction, bucketId) > 0,
    removeOrTrash: (bucketId, ids, now) => removeOrTrash(transaction, bucketId, ids, now),
    restore: async (bucketId, ids, now) => ({ ids: await restoreItems(transaction, bucketId, ids, now) }),
    purge: (bucketId, ids) => purgeItems(transaction, bucketId, ids),
    removeByIds: (bucketId, ids) => removeByIds(transaction, bucketId, ids),
    removeOldest: (bucketId, limit) => removeOldest(transaction, bucketId, limit),
    forgetBucket: buckets.remove,
  }
}

/**
 * Adds items to a bucket. All statements are sent before this returns, so that a commit that is sent after it comes after them. Throws Fault
 * `quota-exceeded`, before any of them.
 */
export function sendItems(
  transaction: Transaction,
  bucketId: BucketId,
  items: readonly AddedItem[],
): Promise<unknown> {
  const bytes = items.reduce((sum, { size }) => sum + size, 0)
  transaction.buckets.requireRoom(bucketId, { items: items.length, bytes })
  return appendItems(transaction, bucketId, items)
}

/** The transaction in which rows are changed. */
export interface Transaction {
  readonly session: Session
  readonly buckets: LockedBuckets
}

/**
 * Appends items, with their contents, their labels and their changes in the feed, and updates the bucket's counters, its revision and the ranks.
 * Records those with an actor in the audit log. As sendItems, no async function: nothing is sent after it has returned.
 */
function appendItems(
  transaction: Transaction,
  bucketId: BucketId,
  added: readonly AddedItem[],
): Promise<unknown> {
  if (added.length === 0) return Promise.resolve()
  const { session, buckets } = transaction
  // Throws if the bucket was deleted.
  buckets.getKept(bucketId)
  const events = uploadEvents(bucketId, added)
  const appended = session.run(appendStatement, ...appendValues(bucketId, added))
  const recorded = recordEvents(session, events)
  buckets.add(bucketId, { items: added.length, bytes: added.reduce((sum, { size }) => sum + size, 0) })
  return Promise.all([appended, recorded])
}

const removedColumns = 'seq, size, content_id, id, content_type, created_at, labels, item_expires_at'

/** Removes the items with these ids; ignores ids of other buckets, and of items that have expired at `now`, if it is given. */
async function removeByIds(
  transaction: Transaction,
  bucketId: BucketId,
  ids: readonly ItemId[],
  now = Number.MIN_SAFE_INTEGER,
): Promise<RemovedItems> {
  const rows = await transaction.session.run(
    `DELETE FROM items WHERE bucket_id = $1 AND id = ANY ($2::text[]) AND ${isLive('$3')} RETURNING ${removedColumns}`,
    ...[bucketId, ids, now],
  )
  const removed = new Set(rows.map((row) => text(row, 3)))
  return {
    ids: ids.filter((id) => removed.has(id)),
    tombstones: await forget(transaction, bucketId, rows),
  }
}

/** Removes up to `limit` items of the bucket, oldest first. Returns their number and their tombstones. */
async function removeOldest(transaction: Transaction, bucketId: BucketId, limit: number) {
  const rows = await transaction.session.run(
    `DELETE FROM items WHERE bucket_id = $1 AND seq = ANY (ARRAY(
      SELECT seq FROM items WHERE bucket_id = $1 ORDER BY seq LIMIT $2))
    RETURNING ${removedColumns}`,
    bucketId,
    limit,
  )
  return { items: rows.length, tombstones: await forget(transaction, bucketId, rows) }
}

/**
 * Removes the contents of deleted rows and adds tombstones: of items whose bytes are in the blob store, and of pictures, which may
 * have variants there.
 */
async function forget(transaction: Transaction, bucketId: BucketId, rows: readonly Row[]): Promise<ItemId[]> {
  if (rows.length === 0) return []
  const { session, buckets } = transaction
  const removed = rows.toSorted((one, other) => integer(one, 0) - integer(other, 0))
  const size = removed.reduce((sum, row) => sum + integer(row, 1), 0)
  const contents = removed.flatMap((row) => integerOrNull(row, 2) ?? [])
  const tombstones = removed
    .filter((row) => row[2] === null || isPictured(text(row, 4)))
    .map((row) => text(row, 3) as ItemId)
  const seqs = removed.map((row) => integer(row, 0))
  const ids = removed.map((row) => text(row, 3))
  await session.run(
    'SELECT forget_items($1, $2, $3, $4, $5, $6)',
    ...[bucketId, seqs, ids, size, contents, tombstones],
  )
  const leaving = removed.map((row) => ({
    seq: integer(row, 0),
    size: integer(row, 1),
    expiry: integerOrNull(row, 7),
  }))
  const counted = await runWork(session, leaveCounts(bucketId, leaving))
  // The counters of a trash are only in its row.
  if (!isTrash(bucketId)) {
    buckets.add(bucketId, { items: counted.items - removed.length, bytes: counted.bytes - size })
    await unindex(transaction, bucketId, labelledRows(removed, 0, 4))
  }
  return tombstones
}

const labelledRows = (rows: readonly Row[], seq: number, column: number): LabelledRow[] =>
  rows.flatMap((row) => labelledRow(integer(row, seq), row, column))

const unindex = (transaction: Transaction, bucketId: BucketId, rows: readonly LabelledRow[]): Promise<void> =>
  runWork(transaction.session, unindexRows(bucketId, rows), engineOf(transaction))

/** 0 for no trash, and for no bucket. */
const trashDaysOf = ({ buckets }: Transaction, id: BucketId): number =>
  buckets.has(id) ? buckets.get(id).trashDays : 0

/** Removes items, or moves them to the trash of a bucket that has one. */
async function removeOrTrash(
  transaction: Transaction,
  bucketId: BucketId,
  ids: readonly ItemId[],
  now: number,
): Promise<RemovedItems> {
  const { session, buckets } = transaction
  const days = trashDaysOf(transaction, bucketId)
  if (days === 0) return removeByIds(transaction, bucketId, ids, now)
  const rows = await session.run(
    'SELECT * FROM trash_items($1, $2::text[], $3, $4)',
    bucketId,
    ids,
    now,
    expiryOf(now, days),
  )
  const trashed = new Set(rows.map((row) => text(row, 0)))
  if (trashed.size > 0) buckets.add(bucketId, { items: -trashed.size })
  await unindex(transaction, bucketId, labelledRows(rows, 1, 2))
  await moveCounts(transaction, bucketId, rows, 5)
  return { ids: ids.filter((id) => trashed.has(id)), tombstones: [] }
}

/** To be called after live items were moved between a bucket and its trash. Their expiry is in a column. */
async function moveCounts(
  { session }: Transaction,
  bucketId: BucketId,
  rows: readonly Row[],
  column: number,
): Promise<void> {
  const expiries = rows.map((row) => integerOrNull(row, column))
  for (const id of [bucketId, trashOf(bucketId)]) await runWork(session, enterCounts(id, expiries))
}

/** Moves the items that have not expired back to the bucket. Returns their ids. Throws Fault `quota-exceeded`. */
async function restoreItems(
  transaction: Transaction,
  bucketId: BucketId,
  ids: readonly ItemId[],
  now: number,
): Promise<ItemId[]> {
  const { session, buckets } = transaction
  const rows = await session.run(
    `SELECT id, home_seq, content_type, created_at, labels, item_expires_at FROM items
    WHERE bucket_id = $1 AND id = ANY ($2::text[]) AND expires_at > $3`,
    trashOf(bucketId),
    ids,
    now,
  )
  const found = new Set(rows.map((row) => text(row, 0)))
  if (found.size === 0) return []
  // Their bytes are counted already.
  buckets.requireRoom(bucketId, { items: found.size, bytes: 0 })
  await session.run('SELECT restore_items($1, $2::text[])', bucketId, [...found])
  const restored = ids.filter((id) => found.has(id))
  await runWork(session, refreshNames(bucketId, restored))
  await runWork(session, indexRows(bucketId, labelledRows(rows, 1, 2)), engineOf(transaction))
  await moveCounts(transaction, bucketId, rows, 5)
  await runWork(session, refreshExpiry(bucketId))
  buckets.add(bucketId, { items: found.size })
  return restored
}

/** Removes items of the trash permanently. */
async function purgeItems(
  transaction: Transaction,
  bucketId: BucketId,
  ids: readonly ItemId[],
): Promise<RemovedItems> {
  if (ids.length === 0) return { ids: [], tombstones: [] }
  const { session, buckets } = transaction
  const [row = []] = await session.run(
    'SELECT coalesce(sum(size), 0)::int8 FROM items WHERE bucket_id = $1 AND id = ANY ($2::text[])',
    trashOf(bucketId),
    ids,
  )
  const removed = await removeByIds(transaction, trashOf(bucketId), ids)
  if (removed.ids.length > 0) {
    const bytes = integer(row, 0)
    await session.run(
      'UPDATE buckets SET bytes = bytes - $2, removed_bytes = removed_bytes + $2 WHERE id = $1',
      bucketId,
      bytes,
    )
    buckets.add(bucketId, { bytes: -bytes })
  }
  return removed
}

type Amounts = Pick<Bucket, 'items' | 'bytes' | 'reservedItems' | 'reservedBytes'>

/**
 * The rows of the buckets that a transaction changes, locked until it ends. Because of the lock, the state here is the state in
 * the database, and quotas need no further reads.
 */
export interface LockedBuckets {
  has(id: BucketId): boolean
  /** Throws Fault `bucket-unknown` if there is no such bucket. */
  get(id: BucketId): Bucket
  /** As get. Throws for a bucket that is deleted and not removed yet too. */
  getKept(id: BucketId): Bucket
  /** Requires that the items, all reservations and `more` fit. Throws Fault `quota-exceeded`. */
  requireRoom(id: BucketId, more: Amount): void
  /** Records a write that the transaction makes. */
  add(id: BucketId, write: Partial<Amounts>): void
  remove(id: BucketId): void
  /** Returns a function that restores the state at this call, after a rollback to a savepoint. */
  save(): () => void
}

/** Buckets by id, by the id of one of their uploads, or by name. */
interface BucketKeys {
  readonly ids: readonly number[]
  readonly uploads: readonly string[]
  readonly names: readonly string[]
}

/**
 * Locks the buckets in the order of their ids, so that two transactions never wait for each other. The writes of the transaction belong to the day of
 * this moment (catalog/usage.ts).
 */
export async function lockBuckets(
  session: Session,
  { ids, uploads, names }: BucketKeys,
): Promise<LockedBuckets> {
  const rows = await session.run(
    `SELECT ${bucketColumns}, id, ${isNotDeleted}, usage_day FROM buckets WHERE id = ANY ($1::int8[]
      || ARRAY(SELECT bucket_id FROM uploads WHERE id = ANY ($2::text[]))
      || ARRAY(SELECT id FROM buckets WHERE name = ANY ($3::text[])))
    ORDER BY id FOR UPDATE`,
    ids,
    uploads,
    names,
  )
  const deleted = new Set(
    rows.filter((row) => row[bucketColumnCount + 1] === false).map((row) => integer(row, bucketColumnCount)),
  )
  let states = new Map(rows.map((row) => [integer(row, bucketColumnCount) as BucketId, bucketOf(row)]))
  const today = dayOf(Date.now())
  for (const row of rows) {
    const id = integer(row, bucketColumnCount) as BucketId
    if (integer(row, bucketColumnCount + 2) !== today && !isTrash(id))
      await runWork(session, openUsageDay(id, today))
  }

  const get = (id: BucketId): Bucket => {
    const bucket = states.get(id)
    if (!bucket) throw bucketDeleted()
    return bucket
  }
  const getKept = (id: BucketId): Bucket => {
    if (deleted.has(id)) throw bucketDeleted()
    return get(id)
  }
  return {
    has: (id) => states.has(id),
    get,
    getKept,
    requireRoom(id, more) {
      const bucket = getKept(id)
      const { items, bytes, reservedItems, reservedBytes } = bucket
      requireWithinQuota(bucket, { items: items + reservedItems, bytes: bytes + reservedBytes }, more)
    },
    add(id, { items = 0, bytes = 0, reservedItems = 0, reservedBytes = 0 }) {
      const bucket = get(id)
      states.set(id, {
        ...bucket,
        items: bucket.items + items,
        bytes: bucket.bytes + bytes,
        reservedItems: bucket.reservedItems + reservedItems,
        reservedBytes: bucket.reservedBytes + reservedBytes,
      })
    },
    remove: (id) => void states.delete(id),
    save() {
      const saved = new Map(states)
      return () => {
        states = saved
      }
    },
  }
}

/** The keys of the buckets that the writes lock. */
export function bucketKeysOf(writes: readonly Write[]): BucketKeys {
  const ids = new Set<number>()
  const uploads = new Set<string>()
  const names = new Set<string>()
  for (const write of writes) {
    const key = bucketKeyOf(write)
    if (key === null) continue
    if ('bucketId' in key) ids.add(key.bucketId)
    else if ('uploadId' in key) uploads.add(key.uploadId)
    else names.add(key.bucket)
  }
  return { ids: [...ids], uploads: [...uploads], names: [...names] }
}

/** The writes of each bucket. */
export async function groupByBucket(session: Session, writes: readonly Write[]): Promise<Write[][]> {
  const rows = await session.run(
    'SELECT id, bucket_id FROM uploads WHERE id = ANY ($1::text[])',
    bucketKeysOf(writes).uploads,
  )
  const bucketOfUpload = new Map(rows.map((row) => [text(row, 0), integer(row, 1)]))
  const keyOf = (write: Write) => {
    const { ids, uploads, names } = bucketKeysOf([write])
    const [key = null] = [...ids, ...uploads.map((id) => bucketOfUpload.get(id) ?? id), ...names]
    return key
  }
  return [...Map.groupBy(writes, keyOf).values()]
}
