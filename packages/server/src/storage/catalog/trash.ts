import type { ItemId } from '../../core/ids.ts'
import type { Actor } from '../../core/token-rules.ts'
import {
  bucketColumns,
  bucketsWithTrash,
  bucketWithTrashOf,
  expiredOfBucket,
  expiredOfTrash,
  expiredPlaces,
  hasManyExpired,
  maxExpired,
  tooManyExpired,
  trashColumns,
} from './buckets.ts'
import { ofBucket, ownChangesOf } from './declarations.ts'
import type { ExpiredRest } from './expired-items.ts'
import { itemRowColumnCount, itemRowColumns, readItemRow } from './item-rows.ts'
import type { BucketId, BucketWithTrash, RemovedItems, TrashedItem, TrashedItems } from './records.ts'
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
  selectColumns,
  type Work,
} from './statements.ts'

/** Changes of the trash and of items that expire. */
export interface TrashChanges {
  /**
   * Moves items from the trash back to their earlier places, if they have not expired. Returns the ids of the moved items. Throws Fault
   * `quota-exceeded`.
   */
  restoreItems(bucketId: BucketId, ids: readonly ItemId[], by?: Actor, now?: number): readonly ItemId[]

  /** Removes items of the trash permanently. Ignores ids of other items. The result is as of removeItems. */
  purgeItems(bucketId: BucketId, ids: readonly ItemId[], by?: Actor): RemovedItems

  /**
   * Removes up to `expiryLimit` items of the bucket that have expired, as removeItems does, permanently. If there may be more, counts 10,000 of them,
   * so that reads do not pass by them. In the audit log the service does it.
   */
  expireItems(bucketId: BucketId, now?: number, by?: Actor): RemovedItems & ExpiredRest
}

/** The maximum number of expired items that one change removes. Other changes wait for it. */
export const expiryLimit = 100

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

const bucketWithTrash = eachEngine(
  (engine) => `SELECT ${bucketColumns}, ${expiredOfBucket(engine, '$2')},
      ${trashColumns}, ${expiredOfTrash(engine, '$2')}
    FROM ${bucketsWithTrash} WHERE id = $1`,
)

/** The bucket and its trash in one state, without what has expired. Null if there is no such bucket. Throws Fault `catalog-busy` if reads pass by too many of it. */
export function* findBucketWithTrash(bucketId: BucketId): Query<BucketWithTrash | null> {
  const found = yield* first(
    (row) => ({
      bucket: bucketWithTrashOf(row),
      isBusy:
        integer(row, expiredPlaces.items) > maxExpired ||
        hasManyExpired({ expired: integer(row, expiredPlaces.expiredTrashItems) }),
    }),
    bucketWithTrash,
    ...[bucketId, Date.now()],
  )
  if (found?.isBusy) throw tooManyExpired()
  return found?.bucket ?? null
}

const trashed = selectColumns({ deletedAt: 'deleted_at', expiresAt: 'expires_at' }, itemRowColumnCount)

const readTrashed = (row: Row): TrashedItem => ({
  ...readItemRow(row),
  deletedAt: integer(row, trashed.at.deletedAt),
  expiresAt: integer(row, trashed.at.expiresAt),
})

/** Rows of a trash that one read examines at most. It takes some milliseconds. */
const maxExamined = 2 ** 13

/** The number of the last of some rows of a trash before a number; null if there are fewer rows. */
const lastExamined =
  'SELECT seq FROM items WHERE bucket_id = $1 AND seq < $2 ORDER BY seq DESC LIMIT 1 OFFSET $3'

const trashRows = `SELECT ${itemRowColumns}, ${trashed.text} FROM items
  WHERE bucket_id = $1 AND seq < $2 AND seq >= $3 AND expires_at > $4 ORDER BY seq DESC LIMIT $5`

/**
 * Up to `limit` items of the trash that have not expired, last deleted first: those after the item with the number `after`. Ends early if it
 * would pass by too many items that have expired. Each part is a range of numbers, so that changes between two statements remove nothing from the
 * list.
 */
export function* listTrash(
  bucketId: BucketId,
  after: number | null,
  limit: number,
  now = Date.now(),
): Query<TrashedItems> {
  const id = trashOf(bucketId)
  const rows: TrashedItem[] = []
  let place = after ?? Number.MAX_SAFE_INTEGER
  let left = maxExamined
  for (let part = limit * 2; ; part *= 8) {
    const count = Math.min(part, left)
    const last = yield* first((row) => integer(row, 0), lastExamined, id, place, count - 1)
    rows.push(...(yield* all(readTrashed, trashRows, id, place, last ?? 0, now, limit - rows.length)))
    left -= count
    if (rows.length === limit || last === null) return { rows, examined: null }
    if (left <= 0) return { rows, examined: last }
    place = last
  }
}

const expiredRows = eachEngine(
  (engine) => `FROM items ${engine === 'sqlite' ? 'INDEXED BY items_expiry' : ''}
    WHERE expires_at IS NOT NULL AND expires_at <= $1 AND bucket_id`,
)

const trashesWithExpired = eachEngine(
  (engine) =>
    `SELECT -id FROM buckets WHERE id < 0 AND EXISTS (SELECT 1 ${expiredRows[engine]} = buckets.id)`,
)

const expiredOfOne = eachEngine(
  (engine) => `SELECT id ${expiredRows[engine]} = $2 ORDER BY expires_at LIMIT $3`,
)

/** Buckets whose trash has items that expired at `now` or before. */
export const expiringTrashes = (now: number): Query<BucketId[]> =>
  all((row) => bucketIdOf(row, 0), trashesWithExpired, now)

/** Up to `limit` items of the trash of a bucket that expired at `now` or before. */
export const expiredTrash = (bucketId: BucketId, now: number, limit: number): Query<ItemId[]> =>
  all((row) => itemIdOf(row, 0), expiredOfOne, ...[now, trashOf(bucketId), limit])

/** Buckets that may have items that expired at `now` or before. */
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

export const reads = {
  ...{ findBucketWithTrash, listTrash, expiringTrashes, expiredTrash, expiringBuckets },
}

export const changes = ownChangesOf<TrashChanges>(
  { restoreItems: 2, purgeItems: 2, expireItems: 2 },
  { locks: ofBucket, changesItems: true },
)
