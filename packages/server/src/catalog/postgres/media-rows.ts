import type { ItemId } from '../../core/media-id.ts'
import { foldName } from '../../core/name-search.ts'
import { isPictured } from '../../core/variant.ts'
import { uploadEvents } from '../audit-log/events.ts'
import type { AddedItem, BucketId, NewItem, RemovedItems } from '../records.ts'
import { integer, integerOrNull, type Row, text } from '../rows.ts'
import { isTrash } from '../trash.ts'
import { recordEvents } from './audit-log.ts'
import type { LockedBuckets } from './locked-buckets.ts'
import type { Session } from './session.ts'
import { bytesArray } from './values.ts'

/** The transaction in which rows are changed. */
export interface Transaction {
  readonly session: Session
  readonly buckets: LockedBuckets
}

/**
 * Appends items, with their contents, and updates the bucket's counters, its revision and the ranks. Records those with an actor in the
 * audit log.
 */
export async function appendItems(
  { session, buckets }: Transaction,
  bucketId: BucketId,
  added: readonly AddedItem[],
): Promise<void> {
  if (added.length === 0) return
  // Throws if the bucket was deleted.
  buckets.get(bucketId)
  const column = <T>(value: (item: NewItem) => T): T[] => added.map(value)
  const sizes = column(({ size }) => size)
  const appended = session.run(
    'SELECT append_items($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)',
    bucketId,
    column(({ id }) => id),
    column(({ extension }) => extension),
    column(({ filename }) => filename),
    column(({ contentType }) => contentType),
    sizes,
    bytesArray(column(({ sha256 }) => sha256)),
    column(({ width }) => width),
    column(({ height }) => height),
    column(({ createdAt }) => createdAt),
    bytesArray(added.map(({ bytes }) => bytes)),
    column(({ expiresAt }) => expiresAt ?? null),
    column(({ filename }) => (filename === null ? null : foldName(filename))),
  )
  // Both are sent without waiting for the result of the first.
  await Promise.all([appended, recordEvents(session, uploadEvents(bucketId, added))])
  buckets.add(bucketId, { items: added.length, bytes: sizes.reduce((sum, size) => sum + size, 0) })
}

const removedColumns = 'seq, size, content_id, id, content_type'

/** Removes the items with these ids; ignores ids of other buckets. */
export async function removeByIds(
  transaction: Transaction,
  bucketId: BucketId,
  ids: readonly ItemId[],
): Promise<RemovedItems> {
  const rows = await transaction.session.run(
    `DELETE FROM items WHERE bucket_id = $1 AND id = ANY ($2::text[]) RETURNING ${removedColumns}`,
    bucketId,
    ids,
  )
  const removed = new Set(rows.map((row) => text(row, 3)))
  return {
    ids: ids.filter((id) => removed.has(id)),
    tombstones: await forget(transaction, bucketId, rows),
  }
}

/** Removes up to `limit` items of the bucket, oldest first. Returns their number and their tombstones. */
export async function removeOldest(transaction: Transaction, bucketId: BucketId, limit: number) {
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
async function forget(
  { session, buckets }: Transaction,
  bucketId: BucketId,
  rows: readonly Row[],
): Promise<ItemId[]> {
  if (rows.length === 0) return []
  const removed = rows.toSorted((one, other) => integer(one, 0) - integer(other, 0))
  const size = removed.reduce((sum, row) => sum + integer(row, 1), 0)
  const contents = removed.flatMap((row) => integerOrNull(row, 2) ?? [])
  const tombstones = removed
    .filter((row) => row[2] === null || isPictured(text(row, 4)))
    .map((row) => text(row, 3) as ItemId)
  const seqs = removed.map((row) => integer(row, 0))
  await session.run('SELECT forget_items($1, $2, $3, $4, $5)', bucketId, seqs, size, contents, tombstones)
  // The counters of a trash are only in its row.
  if (!isTrash(bucketId)) buckets.add(bucketId, { items: -removed.length, bytes: -size })
  return tombstones
}
