import { isNotDeleted } from './buckets.ts'
import type { BucketId } from './records.ts'
import { all, bucketIdOf, integer, type Query, type Row, text, type Work, write } from './statements.ts'
import {
  addition,
  allCounters,
  changeCounters,
  counters,
  isAny,
  readCounts,
  type UsageCounts,
} from './usage.ts'

// How the usage of buckets is copied to another catalog.

/** A row of a table of usage, as it is transferred. */
export interface TransferredUsage extends UsageCounts {
  readonly bucketId: BucketId
  readonly day: number
}

/** The name of a deleted bucket, whose usage is kept. Times are milliseconds since 1970. */
export interface DeletedBucket {
  readonly id: BucketId
  readonly name: string
  readonly createdAt: number
  readonly deletedAt: number
}

/** Rows of usage in a batch of a transfer. */
const usagePerBatch = 1_000

const readTransferred = (row: Row): TransferredUsage => ({
  day: integer(row, 0),
  bucketId: bucketIdOf(row, 1),
  ...readCounts(row, 2),
})

/** The rows after one, for a transfer. */
const usageAfter = (day: number, bucketId: number): Query<TransferredUsage[]> =>
  all(
    readTransferred,
    `SELECT day, bucket_id, ${allCounters.join(', ')} FROM bucket_usage WHERE (day, bucket_id) > ($1, $2)
      ORDER BY day, bucket_id LIMIT ${usagePerBatch}`,
    ...[day, bucketId],
  )

/** What the open days of all buckets have, as rows. */
const openUsage = (): Query<TransferredUsage[]> =>
  all(
    readTransferred,
    `SELECT usage_day, id, ${changeCounters.join(', ')}, 0, 0, 0, 0, 0 FROM buckets WHERE id > 0 AND ${isNotDeleted} AND ${isAny} ORDER BY id`,
  )

export const listDeletedBuckets = (): Query<DeletedBucket[]> =>
  all(
    (row) => ({
      id: bucketIdOf(row, 0),
      name: text(row, 1),
      createdAt: integer(row, 2),
      deletedAt: integer(row, 3),
    }),
    'SELECT id, name, created_at, deleted_at FROM deleted_buckets ORDER BY id',
  )

const transferred = `INSERT INTO bucket_usage (day, bucket_id, ${allCounters.join(', ')})
  VALUES (${[...Array(11).keys()].map((index) => `$${index + 1}`).join(', ')}) ${addition(allCounters)}`

/** Adds transferred rows to those of their days. */
export function* transferUsage(rows: readonly TransferredUsage[]): Work<void> {
  for (const row of rows)
    yield* write(transferred, row.day, row.bucketId, ...counters.map((name) => row[name]))
}

/** Removes what an interrupted transfer has added, and adds the names of deleted buckets. */
export function* beginUsage(deleted: readonly DeletedBucket[]): Work<void> {
  yield* write('DELETE FROM bucket_usage')
  yield* write('DELETE FROM deleted_buckets')
  for (const { id, name, createdAt, deletedAt } of deleted)
    yield* write(
      'INSERT INTO deleted_buckets (id, name, created_at, deleted_at) VALUES ($1, $2, $3, $4)',
      ...[id, name, createdAt, deletedAt],
    )
}

/** All rows, in batches. */
export async function* usageBatches(
  query: <T>(query: Query<T>) => Promise<T>,
): AsyncGenerator<TransferredUsage[]> {
  yield await query(openUsage())
  let rows = await query(usageAfter(-1, 0))
  for (let last = rows.at(-1); last !== undefined; last = rows.at(-1)) {
    yield rows
    rows = await query(usageAfter(last.day, last.bucketId))
  }
}
