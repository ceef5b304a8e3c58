import type { ItemId } from '../../../core/ids.ts'
import { ofBucket, writesOf } from '../declarations.ts'
import type { BucketId } from '../records.ts'
import {
  all,
  bucketIdOf,
  eachEngine,
  first,
  integer,
  itemIdOf,
  type Query,
  type Work,
  write,
} from '../statements.ts'
import { markEdited, recordChanges } from './item-changes.ts'
import { isTakenUnread } from './item-kinds.ts'
import { isTrash } from './trash.ts'

/** A picture or a video whose bytes were not read yet for the time at which it was taken. */
export interface UnreadItem {
  readonly id: ItemId
  readonly bucketId: BucketId
  readonly seq: number
}

/** What the clock of the camera showed, as `takenAt` and `takenOffset` of an item. */
export interface TakenAt {
  readonly time: number
  readonly offset: number | null
}

// The times at which pictures and videos were taken. An upload reads them. The items that it did not read are in an index of their own: those
// whose read failed, and those of an earlier version. A version that reads further types sets `taken_read` of these types to null.

const unread = eachEngine(
  (engine) => `SELECT id, bucket_id, seq FROM items${engine === 'sqlite' ? ' INDEXED BY items_unread' : ''}
    WHERE ${isTakenUnread} AND (bucket_id, seq) > ($1, $2) ORDER BY bucket_id, seq LIMIT $3`,
)

/** Up to `limit` items that were not read, those after this one. Takes no time if there are none. */
export const listUnreadTaken = (after: UnreadItem | null, limit: number): Query<UnreadItem[]> =>
  all(
    (row) => ({ id: itemIdOf(row, 0), bucketId: bucketIdOf(row, 1), seq: integer(row, 2) }),
    unread,
    ...[after?.bucketId ?? Number.MIN_SAFE_INTEGER, after?.seq ?? -1, limit],
  )

const update = eachEngine(
  (engine) => `UPDATE items SET taken_at = $3, taken_offset = $4, taken_read = $5${markEdited[engine]}
    WHERE id = $1 AND bucket_id = $2 AND taken_at IS NULL`,
)

/**
 * Records that the bytes were read, and the time that they have, which is a change of the item. The bucket may not keep times: then it is
 * not stored. Returns whether it was stored.
 */
export function* setTaken(bucketId: BucketId, id: ItemId, taken: TakenAt | null): Work<boolean> {
  const removal = yield* first(
    (row) => integer(row, 0),
    'SELECT remove_metadata FROM buckets WHERE id = $1',
    Math.abs(bucketId),
  )
  const kept = removal === 1 ? null : taken
  const changes = yield* write(
    update,
    ...[id, bucketId, kept?.time ?? null, kept?.offset ?? null, kept === null ? 1 : null],
  )
  const isStored = changes > 0 && kept !== null
  // The trash has no feed.
  if (isStored && !isTrash(bucketId)) yield* recordChanges(bucketId, 'edited', [id])
  return isStored
}

export const reads = { listUnreadTaken }

export const writes = writesOf({ setTaken }, { locks: ofBucket, changesItems: true })
