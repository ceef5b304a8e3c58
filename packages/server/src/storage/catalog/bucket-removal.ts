import type { Actor } from '../../core/token-rules.ts'
import { isNotDeleted, readBucketSettings, requireTag, settingColumns } from './buckets.ts'
import { auditedWritesOf, ofBucket, ofBucketNamed, writesOf } from './declarations.ts'
import { noFailures, stateNumber } from './feed/webhooks.ts'
import { findBucketWithTrash, trashOf } from './items/trash.ts'
import { removeMultipartsOf } from './objects/multipart-uploads.ts'
import type { BucketId, DeletedChunk } from './records.ts'
import {
  bucketIdOf,
  databaseTime,
  eachEngine,
  first,
  inEngine,
  integer,
  type Query,
  record,
  text,
  type Work,
  write,
} from './statements.ts'
import { closeUsage } from './usage.ts'

/** Who removes what a deleted bucket held, so that one process does it, and for how many milliseconds. */
interface DeletionLease {
  readonly owner: string
  readonly lifetime: number
}

/**
 * Deletes the bucket for everybody: its name is free, its tokens are refused, and no read finds its items. What it held is left to
 * deleteBucketChunk. `has-items` if it has items, also in its trash, and they are not to be deleted. Null if there is no such bucket. Throws Fault
 * `precondition-failed` as setBucket.
 */
export function* deleteBucket(
  name: string,
  deletesItems: boolean,
  now: number,
  { owner, lifetime }: DeletionLease,
  by?: Actor,
  expected: string | null = null,
): Work<BucketId | 'has-items' | null> {
  const found = yield* first(
    (row) => ({ id: bucketIdOf(row, 0), settings: readBucketSettings(row, 1) }),
    `SELECT ${['id', ...settingColumns].join(', ')} FROM buckets WHERE name = $1 AND id > 0 AND ${isNotDeleted} FOR UPDATE`,
    name,
  )
  if (found === null) return null
  const { id, settings } = found
  requireTag(id, settings, expected)
  if (!deletesItems) {
    const bucket = yield* findBucketWithTrash(id)
    if (bucket !== null && bucket.items + bucket.trash.items > 0) return 'has-items'
  }
  yield* beginDeletion(id, now, by)
  yield* write(takeLease, deletionKey(id), owner, lifetime)
  return id
}

/**
 * Deletes the bucket for everybody, as deleteBucket, unless that was done, and removes up to `limit` of its items, oldest first, as removeItems does. If no items and
 * uploads are left, removes a part of its feed, tokens and other rows, and with the last one the bucket. Its id is never reused.
 */
export function* deleteBucketChunk(id: BucketId, limit: number, now: number, by?: Actor): Work<DeletedChunk> {
  if (!(yield* beginDeletion(id, now, by))) return { items: 0, tombstones: [], isDeleted: true }
  const listed = yield* inEngine((engine) => engine.removeOldest(id, limit))
  const trashed = yield* removeTrashed(id, limit)
  const parts = yield* removeMultipartsOf(id, limit)
  const isDeleted = yield* endDeletion(id, limit)
  if (isDeleted) yield (engine) => engine.forgetBucket(id)
  return {
    items: listed.items + trashed.items,
    tombstones: [...listed.tombstones, ...trashed.tombstones, ...parts],
    isDeleted,
  }
}

const trashBytes = 'SELECT bytes FROM buckets WHERE id = $1'

/** Removes up to `limit` items of the trash of a bucket, whose bytes its bucket has counted too. */
function* removeTrashed(id: BucketId, limit: number): Work<Omit<DeletedChunk, 'isDeleted'>> {
  const trash = trashOf(id)
  const before = yield* first((row) => integer(row, 0), trashBytes, trash)
  const removed = yield* inEngine((engine) => engine.removeOldest(trash, limit))
  const after = yield* first((row) => integer(row, 0), trashBytes, trash)
  yield* write('UPDATE buckets SET bytes = bytes - $2 WHERE id = $1', id, (before ?? 0) - (after ?? 0))
  return removed
}

/** Ends the validity of what readers of the feed have: as after a renewal, no place in it is valid. */
const feedEnd = 'changes_start = revision, renewed = revision'

/** A deleted bucket has a name that no other bucket can have, and `private` is 2: only its removal is left. */
const deletion = `UPDATE buckets SET private = 2, name = CAST(id AS text) || '/deleted', creation_key = NULL, creation = NULL,
    ${feedEnd} WHERE id = $1`

/** A user of an issuer who has a bucket of the same name later is another row, with the hash that this one had. */
const userRelease = {
  sqlite: `UPDATE tokens SET hash = randomblob(32) WHERE bucket_id = $1 AND id LIKE 'usr%'`,
  postgres: `UPDATE tokens SET hash = sha256(hash) WHERE bucket_id = $1 AND id LIKE 'usr%'`,
}

const webhooksOff = `UPDATE webhooks SET state = ${stateNumber('off')}, ${noFailures} WHERE bucket_id = $1`

/** The beginning of the deletion of a bucket, once. False if there is no such bucket. */
function* beginDeletion(id: BucketId, now: number, by?: Actor): Work<boolean> {
  const bucket = yield* first(
    (row) => ({ name: text(row, 0), isDeleted: integer(row, 1) === 1 }),
    'SELECT name, CAST(private = 2 AS int) FROM buckets WHERE id = $1',
    id,
  )
  if (bucket === null) return false
  if (bucket.isDeleted) return true
  const { name } = bucket
  yield* closeUsage(id, now)
  yield* write(deletion, id)
  yield* record(by, (by) => ({ action: 'bucket-delete', by, bucketId: id, target: null, name }))
  yield* write('UPDATE tokens SET revoked_at = $1 WHERE bucket_id = $2 AND revoked_at IS NULL', now, id)
  yield* write(userRelease, id)
  yield* write(webhooksOff, id)
  return true
}

/** The key of `meta` with the lease of the removal of a deleted bucket: until when it is valid, by the clock of the database, and its owner. */
const deletionKey = (id: BucketId): string => `deleting ${id}`

/** A lease that ends after more than twice its length was taken before the clock was set back. */
const isFree = (engine: keyof typeof databaseTime): string =>
  `(meta.value = '' OR substr(meta.value, 18) = $2
    OR NOT CAST(substr(meta.value, 1, 16) AS bigint) BETWEEN ${databaseTime[engine]} AND ${databaseTime[engine]} + 2 * $3::int8)`

/** Takes or extends the lease. Changes no row if another owner has it. */
const takeLease = eachEngine((engine) => {
  const end = `${databaseTime[engine]} + $3::int8`
  const until = engine === 'sqlite' ? `printf('%016d', ${end})` : `lpad((${end})::text, 16, '0')`
  return `INSERT INTO meta (key, value) VALUES ($1, ${until} || ' ' || $2)
    ON CONFLICT (key) DO UPDATE SET value = excluded.value WHERE ${isFree(engine)}`
})

/** The first bucket that is deleted and not removed yet, after `after` in the order of ids; null if there is none. */
export const deletedBucketAfter = (after: number): Query<BucketId | null> =>
  first(
    (row) => bucketIdOf(row, 0),
    'SELECT id FROM buckets WHERE private = 2 AND id > $1 ORDER BY id LIMIT 1',
    after,
  )

/** Takes or extends the lease of the removal of a deleted bucket. False if another owner has it, or if the bucket has been removed. */
export function* claimDeletion(id: BucketId, { owner, lifetime }: DeletionLease): Work<boolean> {
  const isLeft = yield* first(
    () => true,
    'SELECT 1 FROM buckets WHERE id = $1 AND private = 2 FOR UPDATE',
    id,
  )
  return isLeft === true && (yield* write(takeLease, deletionKey(id), owner, lifetime)) === 1
}

// The driver binds numbers as REAL, whose text would be 2.0.
const retirement = {
  sqlite: `INSERT INTO meta (key, value) VALUES ('last_bucket_id', CAST($1 AS INTEGER))
    ON CONFLICT DO UPDATE SET value = max(CAST(value AS INTEGER), CAST($1 AS INTEGER))`,
  postgres: null,
}

/** Rows that a step of the deletion of a bucket removes, for each item that it may remove. */
const rowsPerItem = 20

const earliest = (table: string, key: string, ofBucket = 'bucket_id = $1') =>
  `DELETE FROM ${table} WHERE (${key}) IN (SELECT ${key} FROM ${table} WHERE ${ofBucket} ORDER BY ${key} LIMIT $2)`

/** Each removes up to $2 rows of the bucket. Those with references come before the rows to which they refer. */
const removals = [
  earliest('changes', 'bucket_id, number'),
  earliest(
    'keyed_requests',
    'token_id, bucket_id, key',
    'bucket_id = $1 AND token_id IN (SELECT id FROM tokens WHERE bucket_id = $1 OR bucket_id IS NULL)',
  ),
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
 * of the items, because all other writes wait for a step.
 */
function* endDeletion(id: BucketId, limit: number): Work<boolean> {
  const isUsed = yield* first(
    (row) => integer(row, 0) === 1,
    `SELECT CAST(EXISTS (SELECT 1 FROM items WHERE bucket_id IN ($1, -$1::int8))
      OR EXISTS (SELECT 1 FROM uploads WHERE bucket_id = $1)
      OR EXISTS (SELECT 1 FROM object_uploads WHERE bucket_id = $1) AS int)`,
    id,
  )
  if (isUsed) return false
  // A reader of a change whose row is removed is refused. Without this, the change would seem to be lost (feed/history.ts).
  yield* write(`UPDATE buckets SET ${feedEnd} WHERE id = $1 AND changes_start < revision`, id)
  let left = limit * rowsPerItem
  for (const removal of removals) {
    left -= yield* write(removal, id, left)
    if (left <= 0) return false
  }
  yield* write('DELETE FROM meta WHERE key = $1', deletionKey(id))
  yield* write(retirement, id)
  for (const table of ['ranks', 'expired_counts', 'keyed_counts'])
    yield* write(`DELETE FROM ${table} WHERE bucket_id IN ($1, -$1::int8)`, id)
  yield* write('DELETE FROM buckets WHERE id IN ($1, -$1::int8)', id)
  return true
}

export const reads = { deletedBucketAfter }

export const writes = {
  ...auditedWritesOf({ deleteBucket }, { locks: ofBucketNamed, changesItems: true }),
  ...auditedWritesOf({ deleteBucketChunk }, { locks: ofBucket, changesItems: true }),
  ...writesOf({ claimDeletion }, { locks: ofBucket }),
}
