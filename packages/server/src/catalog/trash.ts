import { requireFewExpired } from '../core/item-expiry.ts'
import { expiredOfTrash, itemColumnCount, itemColumns, readItem } from './item-columns.ts'
import type { BucketId, RemovedMedia, TrashedItem, TrashState } from './records.ts'
import { integer, type Row } from './rows.ts'

// Deleted items that can be restored are in another bucket, the trash. Its id is the id of their bucket with a minus sign. So statements
// that list a bucket do not read them, and checks, backups and transfers treat them like other items. The byte count of a bucket includes
// its trash, so that the check of a quota reads one row; the total does not include the trash.

export const trashOf = (bucketId: BucketId): BucketId => -bucketId as BucketId
export const isTrash = (bucketId: number): boolean => bucketId < 0
/** No bucket can have this name. */
export const trashName = (bucketId: BucketId): string => `${bucketId}/trash`

const day = 24 * 60 * 60 * 1000
export const expiryOf = (deletedAt: number, days: number): number => deletedAt + days * day

/** The items of a bucket and of its trash that one change has removed. */
export const joinRemoved = (listed: RemovedMedia, trashed: RemovedMedia): RemovedMedia => ({
  ids: [...listed.ids, ...trashed.ids],
  tombstones: [...listed.tombstones, ...trashed.tombstones],
})

/** The columns that `readTrashed` reads, for both engines. */
export const trashedColumns = `${itemColumns}, seq, deleted_at, expires_at`

export const readTrashed = (row: Row): TrashedItem => ({
  item: readItem(row),
  seq: integer(row, itemColumnCount),
  deletedAt: integer(row, itemColumnCount + 1),
  expiresAt: integer(row, itemColumnCount + 2),
})

/** A bucket without a trash row has an empty trash. `now` is a parameter. */
export const trashStateColumns = (
  now: string,
) => `buckets.trash_days, coalesce(trash.total, 0), coalesce(trash.bytes, 0), ${expiredOfTrash(now)}
  FROM buckets LEFT JOIN buckets AS trash ON trash.id = -buckets.id`

/** Throws as requireFewExpired. */
export function readTrashState(row: Row): TrashState {
  const expired = integer(row, 3)
  requireFewExpired(expired)
  return { days: integer(row, 0), items: integer(row, 1) - expired, bytes: integer(row, 2) - integer(row, 4) }
}
