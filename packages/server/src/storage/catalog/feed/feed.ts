import { bucketDeleted } from '../../../core/faults.ts'
import type { ItemId } from '../../../core/ids.ts'
import { writesOf } from '../declarations.ts'
import { type ItemChangeKind, isItemChangeKind, itemChangeKinds } from '../items/item-changes.ts'
import { itemColumnCount, itemColumns } from '../items/item-columns.ts'
import { hasItem, readItemDetails } from '../items/item-rows.ts'
import { isLive } from '../items/items.ts'
import type { BucketId, ItemDetails } from '../records.ts'
import {
  all,
  bucketIdOf,
  eachEngine,
  first,
  integer,
  integerOrNull,
  itemIdOf,
  type Query,
  type Row,
  selectColumns,
  type Work,
  write,
} from '../statements.ts'

// The feed: the changes of the items of each bucket, in the order of their commits. A change is written by the transaction that makes it,
// so a reader sees it exactly when it sees its effect.
//
// A reader stores the number of the last change that it has processed, and reads what follows:
//
//     let { next } = await catalog.readChanges(bucketId, 'now', 0)
//     const stop = catalog.watchChanges(bucketId, wake)
//     for (;;) { const rows = await catalog.readChanges(bucketId, next, 100); … ; next = rows.next; if (!rows.hasMore) await woken }
//
// Numbers are those of one bucket. They increase and have gaps. They are assigned while the row of the bucket is locked, so a reader that has
// seen n never sees a number below n later. They are part of the catalog, so a stored number is valid after a restart. After
// a restore or a migration the feed begins again, with null for each earlier number.

/** After the change of this number, or with `from` at it. */
export type FeedPlace = number | 'start' | 'now' | FeedPosition | { readonly from: number }

/**
 * Where a reader is. Changes are read with the items as they are, so the reader of a change already knows effects of later ones: of all up to
 * `seen`. If the data go back to between the two, it has to start again.
 */
export interface FeedPosition {
  /** Of the last change that the reader has processed. */
  readonly number: number
  readonly seen: number
}

export interface ItemChange extends FeedPosition {
  /** A kind that this version does not know is `unknown`: a later one may have written it. */
  readonly kind: ItemChangeKind | 'unknown'
  readonly itemId: ItemId
  /** Milliseconds since 1970; never used for order. */
  readonly time: number
  /** As it is now; null if the bucket does not list it any more. */
  readonly item: ItemDetails | null
}

export interface ChangeRows {
  readonly changes: readonly ItemChange[]
  /** The number to continue after. */
  readonly next: number
  /** The number of the last change of the feed, whose effects `item` shows already. */
  readonly seen: number
  /** Whether further changes were there already. */
  readonly hasMore: boolean
}

const kindsByNumber = new Map<number, ItemChangeKind>(
  Object.keys(itemChangeKinds)
    .filter(isItemChangeKind)
    .map((kind) => [itemChangeKinds[kind], kind]),
)

const listed = selectColumns(
  {
    ...{ number: 'number', kind: 'kind', itemId: 'item_id', time: 'time', start: 'changes_start' },
    last: `coalesce((SELECT max(number) FROM changes WHERE bucket_id = $1 AND number > changes_start), changes_start)`,
    hasAfter: 'CAST(EXISTS (SELECT 1 FROM changes WHERE bucket_id = $1 AND number = $2) AS int)',
    hasSeen: 'CAST(EXISTS (SELECT 1 FROM changes WHERE bucket_id = $1 AND number = $5) AS int)',
  },
  itemColumnCount,
)

const rows = eachEngine(
  () => `SELECT ${itemColumns}, ${listed.text}
  FROM (SELECT changes_start FROM buckets WHERE id = $1) AS bucket
  LEFT JOIN (SELECT number, kind, item_id, time FROM changes WHERE bucket_id = $1 AND number > $2
    AND number > (SELECT changes_start FROM buckets WHERE id = $1) ORDER BY number LIMIT $3) AS change ON true
  LEFT JOIN items ON items.id = item_id AND items.bucket_id = $1 AND ${isLive('$4')}
  ORDER BY number`,
)

function readChange(row: Row, seen: number): ItemChange | null {
  const number = integerOrNull(row, listed.at.number)
  if (number === null) return null
  const kind = kindsByNumber.get(integer(row, listed.at.kind)) ?? 'unknown'
  return {
    number,
    seen,
    kind,
    itemId: itemIdOf(row, listed.at.itemId),
    time: integer(row, listed.at.time),
    item: hasItem(row) ? readItemDetails(row) : null,
  }
}

function numberBefore(place: FeedPlace): number {
  if (place === 'start') return -1
  if (place === 'now') return Number.MAX_SAFE_INTEGER
  if (typeof place === 'number') return place
  return 'from' in place ? place.from - 1 : place.number
}

/** The numbers of changes whose effects the reader at this place knows. */
export function numbersOf(place: FeedPlace): readonly number[] {
  if (typeof place === 'number') return [place]
  return typeof place === 'string' || 'from' in place ? [] : [place.number, place.seen]
}

/**
 * Up to `limit` changes of the bucket after the number `after`, in order, with the items as they are now, in one snapshot. `start` is the
 * first change that is kept, and `now` the end of the feed. Null if changes after `after` were removed because of their age, or if the
 * feed never had this number, which shows that the data have gone back (history.ts): then the reader lists the items again. Throws Fault
 * `bucket-unknown` if the bucket was deleted.
 */
export function* readChanges(bucketId: BucketId, after: FeedPlace, limit: number): Query<ChangeRows | null> {
  const from = numberBefore(after)
  const [known, seen = known] = numbersOf(after)
  const found = yield* all(
    (row) => ({
      change: readChange(row, integer(row, listed.at.last)),
      start: integer(row, listed.at.start),
      last: integer(row, listed.at.last),
      hasAfter: integer(row, listed.at.hasAfter) === 1,
      hasSeen: integer(row, listed.at.hasSeen) === 1,
    }),
    rows,
    ...[bucketId, from, limit + 1, Date.now(), seen ?? from],
  )
  const [state] = found
  if (state === undefined) throw bucketDeleted()
  const { start, last, hasAfter, hasSeen } = state
  if (known !== undefined && known !== start && (known < start || !hasAfter)) return null
  if (seen !== undefined && seen > start && !hasSeen) return null
  if (typeof after === 'object' && 'from' in after && found[0]?.change?.number !== after.from) return null
  const changes = found.flatMap(({ change }) => change ?? [])
  const hasMore = after !== 'now' && changes.length > limit
  const given = hasMore ? changes.slice(0, limit) : changes
  // A number of the feed and never another revision: one that the feed does not have is of data that were lost.
  return { changes: given, next: hasMore ? (given.at(-1)?.number ?? last) : last, seen: last, hasMore }
}

/** The revisions of these buckets, which increase with each change; those that do not exist are left out. */
export const bucketRevisions = (ids: readonly BucketId[]): Query<(readonly [BucketId, number])[]> =>
  all(
    (row) => [bucketIdOf(row, 0), integer(row, 1)] as const,
    'SELECT id, revision FROM buckets WHERE id = ANY ($1::int8[])',
    ids,
  )

/** Buckets whose changes one transaction removes. */
const bucketsPerRemoval = 100

/** Removes up to about `limit` changes that were made before this time, earliest first; returns how many. */
export function* removeChanges(before: number, limit: number): Work<number> {
  // In the order in which transactions lock buckets.
  const buckets = yield* all(
    (row) => bucketIdOf(row, 0),
    `SELECT id FROM buckets WHERE (SELECT time FROM changes WHERE bucket_id = buckets.id ORDER BY number LIMIT 1) < $1
    ORDER BY id LIMIT ${bucketsPerRemoval}`,
    before,
  )
  let removed = 0
  for (const bucketId of buckets) {
    if (removed >= limit) break
    // After the clock was set back, a change may have a later time than those that follow it.
    const last = yield* first(
      (row) => integerOrNull(row, 0),
      `SELECT max(number) FROM (SELECT number, time FROM changes WHERE bucket_id = $1 ORDER BY number LIMIT $2) AS earliest
      WHERE time < $3`,
      ...[bucketId, limit - removed, before],
    )
    if (last === null) continue
    yield* write(
      'UPDATE buckets SET changes_start = $2 WHERE id = $1 AND changes_start < $2',
      ...[bucketId, last],
    )
    removed += yield* write('DELETE FROM changes WHERE bucket_id = $1 AND number <= $2', bucketId, last)
  }
  return removed
}

export const reads = { readChanges }

export const writes = writesOf({ removeChanges })
