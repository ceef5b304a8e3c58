import type { BucketId } from '../records.ts'
import { all, first, integer, type Query, text, type Work, write } from '../statements.ts'
import { changeColumns, earlierDay, requestColumns } from '../usage.ts'

// All that was ever added to a bucket without what was removed is what it has. So the changes of its days, kept or not, add up to its counters.

const columns = Object.values(changeColumns)

// As texts: damaged ones may be too large for a number.
const storedChanges = `SELECT ${columns.map((column) => `CAST(${column} AS text)`).join(', ')} FROM bucket_usage WHERE bucket_id = $1
  UNION ALL SELECT ${columns.map((column) => `CAST(${column} AS text)`).join(', ')} FROM buckets WHERE id = $1`

/** Items and bytes that were added and not removed. */
function* sumChanges(id: BucketId): Query<{ readonly items: bigint; readonly bytes: bigint }> {
  const rows = yield* all((row) => columns.map((_, column) => BigInt(text(row, column))), storedChanges, id)
  const sums = { items: 0n, bytes: 0n }
  for (const [addedItems = 0n, addedBytes = 0n, removedItems = 0n, removedBytes = 0n] of rows) {
    sums.items += addedItems - removedItems
    sums.bytes += addedBytes - removedBytes
  }
  return sums
}

/** The usage of a deleted bucket has ended before its items are removed. */
function* isDeleted(id: BucketId): Query<boolean> {
  return (yield* first(() => true, 'SELECT 1 FROM buckets WHERE id = $1 AND private = 2', id)) ?? false
}

/** Why the usage of a bucket with these items and bytes does not match them; null if it does. */
export function* wrongUsage(id: BucketId, items: number, bytes: number): Query<string | null> {
  if (yield* isDeleted(id)) return null
  const sums = yield* sumChanges(id)
  if (sums.items === BigInt(items) && sums.bytes === BigInt(bytes)) return null
  return `the changes of all days add up to ${sums.items} items of ${sums.bytes} bytes, the rows to ${items} items of ${bytes} bytes`
}

const isValid = (column: string) => `${column} BETWEEN 0 AND ${Number.MAX_SAFE_INTEGER}`
const corrected = (names: readonly string[]) =>
  names.map((column) => `${column} = CASE WHEN ${isValid(column)} THEN ${column} ELSE 0 END`).join(', ')

const usageColumns = [...columns, ...Object.values(requestColumns)]
const usageCorrection = `UPDATE bucket_usage SET ${corrected(usageColumns)}
  WHERE bucket_id = $1 AND NOT (${usageColumns.map(isValid).join(' AND ')})`
const openCorrection = `UPDATE buckets SET ${corrected(columns)} WHERE id = $1 AND NOT (${columns.map(isValid).join(' AND ')})`

const difference = `INSERT INTO bucket_usage (day, bucket_id, ${columns.join(', ')}) VALUES (${earlierDay}, $1, $2, $3, $4, $5)
  ON CONFLICT (day, bucket_id) DO UPDATE SET ${columns.map((column) => `${column} = bucket_usage.${column} + excluded.${column}`).join(', ')}`

/** Makes the usage match these items and bytes. What is missing or too much is counted on days that are no longer kept. */
export function* correctUsage(id: BucketId, items: number, bytes: number): Work<void> {
  if (yield* isDeleted(id)) return
  yield* write(usageCorrection, id)
  yield* write(openCorrection, id)
  const sums = yield* sumChanges(id)
  const [moreItems, moreBytes] = [items - Number(sums.items), bytes - Number(sums.bytes)]
  if (moreItems === 0 && moreBytes === 0) return
  yield* write(
    difference,
    ...[id, Math.max(moreItems, 0), Math.max(moreBytes, 0), Math.max(-moreItems, 0), Math.max(-moreBytes, 0)],
  )
}

/** The same with the stored counters of the bucket. */
export function* correctStoredUsage(id: BucketId): Work<void> {
  const stored = yield* first(
    (row) => ({ items: integer(row, 0), bytes: integer(row, 1) }),
    'SELECT total, bytes FROM buckets WHERE id = $1',
    id,
  )
  if (stored !== null) yield* correctUsage(id, stored.items, stored.bytes)
}
