import type { ItemId } from '../../../core/ids.ts'
import { type Actor, service } from '../../../core/token-rules.ts'
import { itemEvents } from '../audit/audit-events.ts'
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
} from '../buckets.ts'
import { auditedWritesOf, ofBucket } from '../declarations.ts'
import type {
  BucketId,
  BucketWithTrash,
  ItemState,
  RemovedItems,
  TrashedItem,
  TrashedItems,
} from '../records.ts'
import {
  all,
  bucketIdOf,
  type EngineName,
  eachEngine,
  first,
  inEngine,
  integer,
  itemIdOf,
  type Query,
  type Row,
  selectColumns,
  textOrNull,
  type Work,
  write,
} from '../statements.ts'
import { countRest, type ExpiredRest } from './expired-items.ts'
import { changeKindOf, recordChanges } from './item-changes.ts'
import { itemRowColumnCount, itemRowColumns, readItemRow } from './item-rows.ts'
import { findLiveItem, hasChanged } from './items.ts'

/** The maximum number of expired items that one write removes. Other writes wait for it. */
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

/** The columns of readBucketWithTrash, without what has expired at `$2`, of `bucketsWithTrash`. */
export const bucketWithTrashColumns = (engine: EngineName): string =>
  `${bucketColumns}, ${expiredOfBucket(engine, '$2')}, ${trashColumns}, ${expiredOfTrash(engine, '$2')}`

const bucketWithTrash = eachEngine(
  (engine) => `SELECT ${bucketWithTrashColumns(engine)} FROM ${bucketsWithTrash} WHERE id = $1`,
)

/** A bucket and its trash; `isBusy` if reads pass by too many of its expired items. */
export const readBucketWithTrash = (row: Row) => ({
  bucket: bucketWithTrashOf(row),
  isBusy:
    integer(row, expiredPlaces.items) > maxExpired ||
    hasManyExpired({ expired: integer(row, expiredPlaces.expiredTrashItems) }),
})

/** The bucket and its trash in one state, without what has expired. Null if there is no such bucket. Throws Fault `catalog-busy` if reads pass by too many of it. */
export function* findBucketWithTrash(bucketId: BucketId): Query<BucketWithTrash | null> {
  const found = yield* first(readBucketWithTrash, bucketWithTrash, ...[bucketId, Date.now()])
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
const expiryRefresh = eachEngine((engine) => {
  const first = (bucket: string) =>
    `SELECT min(item_expires_at) AS first FROM items ${engine === 'sqlite' ? 'INDEXED BY items_item_expiry' : ''}
    WHERE bucket_id = ${bucket} AND item_expires_at IS NOT NULL`
  return `UPDATE buckets SET next_expiry =
    (SELECT min(first) FROM (${first('$1')} UNION ALL ${first('-$1::int8')}) AS expiries) WHERE id = $1`
})

/** Records when the next item of the bucket or its trash expires. Call it after items that expire were added, restored or removed. */
export function* refreshExpiry(bucketId: BucketId): Work<void> {
  yield* write(expiryRefresh, bucketId)
}

/** A change of items that is recorded. */
interface RecordedChange {
  readonly action: keyof typeof changeKindOf
  readonly bucketId: BucketId
  /** Those that it may change. */
  readonly ids: readonly ItemId[]
  readonly by: Actor | undefined
}

const readFile = (row: Row) =>
  [itemIdOf(row, 0), { name: textOrNull(row, 1), size: integer(row, 2) }] as const

/** Removes or restores items, and records which of them have changed, in the feed, and in the audit log if the write has an actor. */
function* recorded<Changed extends Pick<RemovedItems, 'ids'>>(
  { action, bucketId, ids, by }: RecordedChange,
  make: Work<Changed>,
): Work<Changed> {
  const rows = 'SELECT id, filename, size FROM items WHERE id = ANY ($1::text[])'
  const files = by === undefined ? [] : yield* all(readFile, rows, ids)
  const changed = yield* make
  yield* recordChanges(bucketId, changeKindOf[action], changed.ids)
  if (by !== undefined)
    yield (engine) => engine.record(itemEvents(action, by, bucketId, changed.ids, new Map(files)))
  return changed
}

/**
 * Removes the items with these ids and their bytes in one transaction; ignores ids of other buckets. Adds a tombstone for each item whose bytes
 * or variants may be in the blob store. If the bucket has a trash, moves the items there instead. `ids` has no repeated id.
 */
export function* removeItems(
  bucketId: BucketId,
  ids: readonly ItemId[],
  by?: Actor,
  now = Date.now(),
): Work<RemovedItems> {
  const hasTrash = yield* inEngine((engine) => engine.hasTrash(bucketId))
  return yield* recorded(
    { action: hasTrash ? 'trash' : 'delete', bucketId, ids, by },
    inEngine((engine) => engine.removeOrTrash(bucketId, ids, now)),
  )
}

/** As removeItems, of one item, unless its texts are not these: then null. */
export function* removeUnchanged(
  bucketId: BucketId,
  id: ItemId,
  expected: ItemState,
  by?: Actor,
  now = Date.now(),
): Work<RemovedItems | null> {
  const found = yield* findLiveItem(bucketId, id, now)
  if (found !== null && hasChanged(found.item, expected)) return null
  return yield* removeItems(bucketId, [id], by, now)
}

/**
 * Moves items from the trash back to their earlier places, if they have not expired. Returns the ids of the moved items. Throws Fault
 * `quota-exceeded`.
 */
export function* restoreItems(
  bucketId: BucketId,
  ids: readonly ItemId[],
  by?: Actor,
  now = Date.now(),
): Work<readonly ItemId[]> {
  const restored = yield* recorded(
    { action: 'restore', bucketId, ids, by },
    inEngine((engine) => engine.restore(bucketId, ids, now)),
  )
  return restored.ids
}

/** Removes items of the trash permanently. Ignores ids of other items. The result is as of removeItems. */
export const purgeItems = (bucketId: BucketId, ids: readonly ItemId[], by?: Actor): Work<RemovedItems> =>
  recorded(
    { action: 'purge', bucketId, ids, by },
    inEngine((engine) => engine.purge(bucketId, ids)),
  )

const expiredIds = eachEngine(
  (engine) => `SELECT id FROM items ${engine === 'sqlite' ? 'INDEXED BY items_item_expiry' : ''}
    WHERE bucket_id = $1 AND item_expires_at IS NOT NULL AND item_expires_at <= $2 ORDER BY item_expires_at LIMIT $3`,
)

/** The first to expire first. */
const expiredOf = (id: BucketId, now: number, limit: number): Query<ItemId[]> =>
  all((row) => itemIdOf(row, 0), expiredIds, ...[id, now, limit])

/**
 * Removes up to `expiryLimit` items of the bucket that have expired, as removeItems does, permanently. If there may be more, counts 10,000 of them,
 * so that reads do not pass by them. In the audit log the service does it.
 */
export function* expireItems(bucketId: BucketId, now?: number, by?: Actor): Work<RemovedItems & ExpiredRest> {
  const at = now ?? Date.now()
  const listed = yield* expiredOf(bucketId, at, expiryLimit)
  const trashed = yield* expiredOf(trashOf(bucketId), at, expiryLimit - listed.length)
  const ids = [...listed, ...trashed]
  const removed = yield* recorded(
    { action: 'expire', bucketId, ids, by: by && service },
    removeExpired(bucketId, listed, trashed),
  )
  yield* refreshExpiry(bucketId)
  return { ...removed, ...(yield* countRest(bucketId, at, removed.ids.length === expiryLimit)) }
}

function* removeExpired(
  bucketId: BucketId,
  listed: readonly ItemId[],
  trashed: readonly ItemId[],
): Work<RemovedItems> {
  const removed = yield* inEngine((engine) => engine.removeByIds(bucketId, listed))
  const purged = yield* inEngine((engine) => engine.purge(bucketId, trashed))
  return {
    ids: [...removed.ids, ...purged.ids],
    tombstones: [...removed.tombstones, ...purged.tombstones],
  }
}

export const reads = {
  ...{ findBucketWithTrash, listTrash, expiringTrashes, expiredTrash, expiringBuckets },
}

export const writes = auditedWritesOf(
  { removeItems, removeUnchanged, restoreItems, purgeItems, expireItems },
  { locks: ofBucket, changesItems: true },
)
