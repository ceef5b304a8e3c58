import type { Actor } from '../../core/token-rules.ts'
import { auditedChangesOf, ofBucket } from './declarations.ts'
import { trashOf } from './items/trash.ts'
import type { BucketId, DeletedChunk } from './records.ts'
import { change, first, inEngine, integer, record, text, type Work } from './statements.ts'

/**
 * Revokes the tokens of the bucket and removes up to `limit` of its items, oldest first, as removeItems does. If no items and
 * uploads are left, removes a part of its feed, tokens and other rows, and with the last one the bucket. Its id is never reused.
 */
export function* deleteBucketChunk(id: BucketId, limit: number, now: number, by?: Actor): Work<DeletedChunk> {
  if (!(yield* beginDeletion(id, now, by))) return { items: 0, tombstones: [], isDeleted: true }
  const listed = yield* inEngine((engine) => engine.removeOldest(id, limit))
  const trashed = yield* inEngine((engine) => engine.removeOldest(trashOf(id), limit))
  const isDeleted = yield* endDeletion(id, limit)
  if (isDeleted) yield (engine) => engine.forgetBucket(id)
  return {
    items: listed.items + trashed.items,
    tombstones: [...listed.tombstones, ...trashed.tombstones],
    isDeleted,
  }
}

/** The key of `meta` that marks a bucket whose deletion has begun. */
const deletionKey = (id: BucketId): string => `deleting ${id}`

/** The beginning of each step of the deletion of a bucket. False if there is no such bucket. */
function* beginDeletion(id: BucketId, now: number, by?: Actor): Work<boolean> {
  const name = yield* first((row) => text(row, 0), 'SELECT name FROM buckets WHERE id = $1', id)
  if (name === null) return false
  // The first step of a deletion is its event, whether or not the last one is reached.
  const mark = "INSERT INTO meta (key, value) VALUES ($1, '') ON CONFLICT DO NOTHING"
  if ((yield* change(mark, deletionKey(id))) === 1)
    yield* record(by, (by) => ({ action: 'bucket-delete', by, bucketId: id, target: null, name }))
  yield* change('UPDATE tokens SET revoked_at = $1 WHERE bucket_id = $2 AND revoked_at IS NULL', now, id)
  return true
}

// The driver binds numbers as REAL, whose text would be 2.0.
const retirement = {
  sqlite: `INSERT INTO meta (key, value) VALUES ('last_bucket_id', CAST($1 AS INTEGER))
    ON CONFLICT DO UPDATE SET value = max(CAST(value AS INTEGER), CAST($1 AS INTEGER))`,
  postgres: null,
}

/** As after a renewal, no place in the feed is valid. */
const feedEnd =
  'UPDATE buckets SET changes_start = revision, renewed = revision WHERE id = $1 AND changes_start < revision'

/** Rows that a step of the deletion of a bucket removes, for each item that it may remove. */
const rowsPerItem = 20

const earliest = (table: string, key: string, ofBucket = 'bucket_id = $1') =>
  `DELETE FROM ${table} WHERE (${key}) IN (SELECT ${key} FROM ${table} WHERE ${ofBucket} ORDER BY ${key} LIMIT $2)`

/** Each removes up to $2 rows of the bucket. Those with references come before the rows to which they refer. */
const removals = [
  earliest('changes', 'bucket_id, number'),
  earliest('keyed_requests', 'token_id, key', 'token_id IN (SELECT id FROM tokens WHERE bucket_id = $1)'),
  earliest('token_limits', 'id'),
  earliest('tokens', 'number'),
  earliest('item_names', 'bucket_id, slot'),
  earliest('item_labels', 'bucket_id, label_id, kind, created_at, seq'),
  earliest('labels', 'id'),
  earliest(
    'webhook_deliveries',
    'webhook, number',
    'webhook IN (SELECT number FROM webhooks WHERE bucket_id = $1)',
  ),
  earliest('webhooks', 'number'),
]

/**
 * Removes the bucket if it has no items and uploads. Returns whether it has removed it. Before, removes what belongs to it in steps like those
 * of the items, because all other changes wait for a step.
 */
function* endDeletion(id: BucketId, limit: number): Work<boolean> {
  const isUsed = yield* first(
    (row) => integer(row, 0) === 1,
    `SELECT CAST(EXISTS (SELECT 1 FROM items WHERE bucket_id IN ($1, -$1::int8))
      OR EXISTS (SELECT 1 FROM uploads WHERE bucket_id = $1) AS int)`,
    id,
  )
  if (isUsed) return false
  // A reader of a change whose row is removed is refused. Without this, the change would seem to be lost (feed/history.ts).
  yield* change(feedEnd, id)
  let left = limit * rowsPerItem
  for (const removal of removals) {
    left -= yield* change(removal, id, left)
    if (left <= 0) return false
  }
  yield* change('DELETE FROM meta WHERE key = $1', deletionKey(id))
  yield* change(retirement, id)
  for (const table of ['ranks', 'expired_counts'])
    yield* change(`DELETE FROM ${table} WHERE bucket_id IN ($1, -$1::int8)`, id)
  yield* change('DELETE FROM buckets WHERE id IN ($1, -$1::int8)', id)
  return true
}

export const changes = auditedChangesOf({ deleteBucketChunk }, { locks: ofBucket, changesItems: true })
