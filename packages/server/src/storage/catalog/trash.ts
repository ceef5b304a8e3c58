import { bucketDeleted } from '../../core/faults.ts'
import type { ItemId } from '../../core/ids.ts'
import type { Actor } from '../../core/tokens.ts'
import { expiredOfTrash, requireFewExpired } from './buckets.ts'
import type { ExpiredRest } from './expired-items.ts'
import { itemColumnCount, itemColumns, readItemDetails } from './items.ts'
import type { BucketId, RemovedItems, TrashedItem, TrashState } from './records.ts'
import {
  all,
  bucketIdOf,
  change,
  eachEngine,
  first,
  integer,
  itemIdOf,
  type Query,
  type Row,
  type Work,
} from './statements.ts'

/** The trash of the catalog, and items that expire. */
export interface TrashCatalog {
  /**
   * Moves items from the trash back to their earlier places, if they have not expired. Returns the ids of the moved items. Throws Fault
   * `quota-exceeded`.
   */
  restoreItems(
    bucketId: BucketId,
    ids: readonly ItemId[],
    by?: Actor,
    now?: number,
  ): Promise<readonly ItemId[]>

  /** Removes items of the trash permanently. Ignores ids of other items. The result is as of removeItems. */
  purgeItems(bucketId: BucketId, ids: readonly ItemId[], by?: Actor): Promise<RemovedItems>

  /**
   * Removes up to 100 items of the bucket that have expired, as removeItems does, permanently. If there may be more, counts 10,000 of them, so that
   * reads do not pass by them.
   */
  expireItems(bucketId: BucketId, now?: number): Promise<RemovedItems & ExpiredRest>

  /** Buckets that may have items that expired at `now` or before. */
  expiringBuckets(now: number): Promise<readonly BucketId[]>

  trashState(bucketId: BucketId): Promise<TrashState>

  /** Up to `limit` items of the trash that have not expired, last deleted first: those after the item with the number `after`. */
  trash(
    bucketId: BucketId,
    after: number | null,
    limit: number,
    now?: number,
  ): Promise<readonly TrashedItem[]>

  /** Up to `limit` items of all trashes that expired at `now` or before. */
  expiredTrash(
    now: number,
    limit: number,
  ): Promise<readonly { readonly bucketId: BucketId; readonly id: ItemId }[]>
}

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
export const joinRemoved = (listed: RemovedItems, trashed: RemovedItems): RemovedItems => ({
  ids: [...listed.ids, ...trashed.ids],
  tombstones: [...listed.tombstones, ...trashed.tombstones],
})

const trashRow = eachEngine(
  (
    engine,
  ) => `SELECT buckets.trash_days, coalesce(trash.total, 0), coalesce(trash.bytes, 0), ${expiredOfTrash(engine, '$2')}
    FROM buckets LEFT JOIN buckets AS trash ON trash.id = -buckets.id WHERE buckets.id = $1`,
)

/** As TrashCatalog.trashState. */
export function* trashState(bucketId: BucketId): Query<TrashState> {
  // A bucket without a row of its trash has an empty one.
  const trash = yield* first(
    (row) => ({
      days: integer(row, 0),
      items: integer(row, 1),
      bytes: integer(row, 2),
      expired: { items: integer(row, 3), bytes: integer(row, 4) },
    }),
    trashRow,
    ...[bucketId, Date.now()],
  )
  if (trash === null) throw bucketDeleted()
  const { days, items, bytes, expired } = trash
  requireFewExpired(expired.items)
  return { days, items: items - expired.items, bytes: bytes - expired.bytes }
}

const readTrashed = (row: Row): TrashedItem => ({
  item: readItemDetails(row),
  seq: integer(row, itemColumnCount),
  deletedAt: integer(row, itemColumnCount + 1),
  expiresAt: integer(row, itemColumnCount + 2),
})

/** As TrashCatalog.trash. */
export const listTrash = (
  bucketId: BucketId,
  after: number | null,
  limit: number,
  now: number,
): Query<TrashedItem[]> =>
  all(
    readTrashed,
    `SELECT ${itemColumns}, seq, deleted_at, expires_at FROM items
    WHERE bucket_id = $1 AND seq < $2 AND expires_at > $3 ORDER BY seq DESC LIMIT $4`,
    ...[trashOf(bucketId), after ?? Number.MAX_SAFE_INTEGER, now, limit],
  )

const expiredRows = {
  sqlite: `SELECT -bucket_id, id FROM items INDEXED BY items_expiry
    WHERE expires_at IS NOT NULL AND expires_at <= $1 ORDER BY expires_at LIMIT $2`,
  postgres: 'SELECT -bucket_id, id FROM items WHERE expires_at <= $1 ORDER BY expires_at LIMIT $2',
}

/** As TrashCatalog.expiredTrash. */
export const expiredTrash = (now: number, limit: number) =>
  all((row) => ({ bucketId: bucketIdOf(row, 0), id: itemIdOf(row, 1) }), expiredRows, now, limit)

/** As TrashCatalog.expiringBuckets. */
export const expiringBuckets = (now: number): Query<BucketId[]> =>
  all((row) => bucketIdOf(row, 0), 'SELECT id FROM buckets WHERE next_expiry <= $1 AND id > 0', now)

/** Its parameter is the bucket. */
export const expiryRefresh = eachEngine((engine) => {
  const first = (bucket: string) =>
    `SELECT min(item_expires_at) AS first FROM items ${engine === 'sqlite' ? 'INDEXED BY items_item_expiry' : ''}
    WHERE bucket_id = ${bucket} AND item_expires_at IS NOT NULL`
  return `UPDATE buckets SET next_expiry =
    (SELECT min(first) FROM (${first('$1')} UNION ALL ${first('-$1::int8')}) AS expiries) WHERE id = $1`
})

/** Records when the next item of the bucket or its trash expires. Call it after items that expire were added, restored or removed. */
export function* refreshExpiry(bucketId: BucketId): Work<void> {
  yield* change(expiryRefresh, bucketId)
}
