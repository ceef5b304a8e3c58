import { maxLabels, nameKey } from '@mediabucket/client/rules'
import { Fault } from '../../../core/faults.ts'
import type { ItemId } from '../../../core/ids.ts'
import { changeLabels, type LabelChanges, type Labels } from '../../../core/item-labels.ts'
import { nameLine } from '../../../core/names.ts'
import type { ItemOrder } from '../../../core/queries.ts'
import type { Actor } from '../../../core/token-rules.ts'
import { countLimited } from '../access/token-limits.ts'
import { addedBy } from '../audit/audit-events.ts'
import { auditedWritesOf, ofBucket, writesOf } from '../declarations.ts'
import type {
  AddedItem,
  BucketId,
  ContentId,
  EditedItem,
  IdempotentRequest,
  Item,
  ItemDetails,
  ItemEdit,
  ItemPlace,
  ItemRows,
  ItemSelection,
  ItemState,
  LabelledItems,
  NewItem,
  NewPreview,
  PageRows,
  PositionedItems,
  Servability,
  TokenId,
} from '../records.ts'
import {
  all,
  bytes,
  eachEngine,
  first,
  formatLabels,
  integerOrNull,
  type Query,
  record,
  text,
  type Work,
  write,
} from '../statements.ts'
import { markEdited, recordChanges } from './item-changes.ts'
import { columnOf, editedMembers, type ItemMember } from './item-columns.ts'
import { refreshNames } from './item-names.ts'
import { itemRowColumns, parseItems, readItemRow, serializeItems, storedValue } from './item-rows.ts'
import { indexEdits } from './labels.ts'

/** Reads of which engines have their own version. */
export interface ItemReads {
  /** Page `page` (from 1) of ten items in upload order; no rows past the end. O(log n) at any depth. */
  page(bucketId: BucketId, page: number): PageRows

  /**
   * Up to `limit` of the selected items: those that follow `after`, or the first ones if it is null. Takes O(log n) and a time
   * for each returned item; with a name, see docs/architecture/listing.md, Search by name. Throws Fault `bucket-unknown` if the bucket was deleted.
   */
  items(selection: ItemSelection, after: ItemPlace | null, limit: number): ItemRows

  /** Up to `limit` items of a bucket in this order, from the position `first` (from 0) on; none past the end. O(log n) at any depth. */
  itemsAt(bucketId: BucketId, order: ItemOrder, first: number, limit: number): PositionedItems

  /** The current row of the item with this id, in any bucket. Never cached. */
  item(id: ItemId): Item | null

  /**
   * For each id, whether an item of any bucket has it and can be served to everybody; all as of one moment. Reflects every write that
   * was committed before the call.
   */
  servability(ids: readonly ItemId[]): readonly Servability[]

  /** Bytes that are stored in the catalog; null if their item was deleted. */
  content(id: ContentId): Uint8Array<ArrayBuffer> | null
}

const editUpdate = eachEngine(
  (engine) => `UPDATE items SET renamed = coalesce($3, renamed), name_key = $4${markEdited[engine]},
    ${editedMembers.map((member, index) => `${columnOf(member)} = $${index + 5}`).join(', ')} WHERE id = $1 AND bucket_id = $2`,
)

/** The row of an item of the bucket that has not expired; null if there is none. */
export const findLiveItem = (bucketId: BucketId, id: ItemId, now: number) =>
  first(
    readItemRow,
    `SELECT ${itemRowColumns} FROM items WHERE id = $1 AND bucket_id = $2 AND ${isLive('$3')}`,
    ...[id, bucketId, now],
  )

/** Changes an item of the bucket. With `expected`, only if it has these texts. An edit without a change is not a change of the bucket. */
export function* editItem(
  bucketId: BucketId,
  id: ItemId,
  edit: ItemEdit,
  expected: ItemState | null,
  by?: Actor,
): Work<EditedItem> {
  const found = yield* findLiveItem(bucketId, id, Date.now())
  if (found === null) return 'missing'
  const { item, seq } = found
  if (expected !== null && hasChanged(item, expected)) return 'changed'
  const { labels: labelChanges = {}, ...texts } = edit
  const labels = changeLabels(item.labels, labelChanges)
  if (hasTooMany(labels)) return 'full'
  const edited = withLabels({ ...item, ...texts }, labels)
  const changed = changedMembers(item, edited)
  if (changed.length === 0) return item
  const { filename, size } = edited
  yield* write(
    editUpdate,
    ...[id, bucketId, changed.includes('filename') ? 1 : null, nameKey(nameLine(filename))],
    ...editedMembers.map((member) => storedValue(edited, member)),
  )
  if (changed.includes('labels')) yield* indexEdits(bucketId, [{ row: { ...item, seq }, labels }])
  yield* recordChanges(bucketId, 'edited', [id])
  if (changed.includes('filename')) yield* refreshNames(bucketId, [id])
  // The event has no values of texts but the new name.
  yield* record(by, (by) => {
    const detail = { changed: changed.map(columnOf) }
    return { action: 'edit', by, bucketId, target: id, name: filename, size, detail }
  })
  return edited
}

const changedMembers = (item: ItemState, other: ItemState): readonly ItemMember[] =>
  editedMembers.filter((member) => storedValue(item, member) !== storedValue(other, member))

export const hasChanged = (item: ItemState, expected: ItemState): boolean =>
  changedMembers(item, expected).length > 0

const withLabels = ({ labels: _earlier, ...item }: ItemDetails, labels: Labels | null): ItemDetails =>
  labels === null ? item : { ...item, labels }

const hasTooMany = (labels: Labels | null): boolean => Object.keys(labels ?? {}).length > maxLabels

const labelsUpdate = eachEngine(
  (engine) =>
    `UPDATE items SET labels = $3${markEdited[engine]} WHERE bucket_id = $1 AND seq = ANY ($2::int8[])`,
)

/** Changes the labels of these items of the bucket in one transaction; ignores ids of other buckets. `ids` has no repeated id. */
export function* labelItems(
  bucketId: BucketId,
  ids: readonly ItemId[],
  changes: LabelChanges,
  by?: Actor,
): Work<LabelledItems> {
  const found = yield* all(
    (row) => {
      const { item, seq } = readItemRow(row)
      return { ...item, seq }
    },
    `SELECT ${itemRowColumns} FROM items WHERE bucket_id = $1 AND id = ANY ($2::text[]) AND ${isLive('$3')}`,
    ...[bucketId, ids, Date.now()],
  )
  const edits = found.map((row) => ({ row, labels: changeLabels(row.labels, changes) }))
  const full = edits.filter(({ labels }) => hasTooMany(labels)).map(({ row }) => row.id)
  if (full.length > 0) return { ids: [], full }
  const changed = edits.filter(({ row, labels }) => formatLabels(row.labels) !== formatLabels(labels))
  for (const [labels, rows] of Map.groupBy(changed, (edit) => formatLabels(edit.labels)))
    yield* write(
      labelsUpdate,
      bucketId,
      rows.map(({ row }) => row.seq),
      labels,
    )
  yield* indexEdits(bucketId, changed)
  if (changed.length > 0)
    yield* recordChanges(
      bucketId,
      'edited',
      changed.map(({ row }) => row.id),
    )
  for (const { row } of changed)
    yield* record(by, (by) => {
      const { id, filename, size } = row
      return {
        action: 'edit',
        by,
        bucketId,
        target: id,
        name: filename,
        size,
        detail: { changed: ['labels'] },
      }
    })
  return { ids: found.map(({ id }) => id), full: [] }
}

const previewUpdate = eachEngine(
  (engine) => `UPDATE items SET thumbhash = $1, duration = coalesce(duration, $2),
    width = CASE WHEN $7::int4 = 1 THEN $3 ELSE coalesce(width, $3) END,
    height = CASE WHEN $7::int4 = 1 THEN $4 ELSE coalesce(height, $4) END${markEdited[engine]}
    WHERE id = $5 AND bucket_id = $6 AND (thumbhash IS NULL OR $7::int4 = 1)`,
)

/**
 * Records what the first render of the item's variants has found, and increments the bucket's revision. Known values stay, and
 * nothing changes if the item has a ThumbHash.
 */
export function* setPreview(
  bucketId: BucketId,
  id: ItemId,
  { thumbhash, duration, width, height, isCorrection = false }: NewPreview,
): Work<undefined> {
  const changes = yield* write(
    previewUpdate,
    ...[thumbhash, duration, width, height, id, bucketId, isCorrection ? 1 : 0],
  )
  if (changes > 0) yield* recordChanges(bucketId, 'previewed', [id])
}

/** True for items that have not expired at `now`, a parameter. */
export const isLive = (now: string): string => `coalesce(item_expires_at > ${now}, true)`

/** The items of the first request with the key of the token in this bucket; null if the key is new or expired. Throws Fault `idempotency-key-reused`. */
export function* findRepeated(
  bucketId: BucketId,
  { tokenId, key, fingerprint, now }: IdempotentRequest,
): Query<readonly NewItem[] | null> {
  const found = yield* first(
    (row) => ({ items: parseItems(text(row, 0)), fingerprint: bytes(row, 1) }),
    `SELECT items::text, fingerprint FROM keyed_requests
      WHERE token_id = $1 AND bucket_id = $2 AND key = $3 AND expires_at > $4`,
    ...[tokenId, bucketId, key, now],
  )
  if (found === null) return null
  if (!Buffer.from(found.fingerprint).equals(fingerprint))
    throw new Fault('idempotency-key-reused', 'This Idempotency-Key was used for other files; use a new one.')
  return found.items
}

/** The first request with a key, if it was stored and has not expired at `now`: the bytes of its files, as they were sent, if that is known. */
export const findKeyed = (
  bucketId: BucketId,
  { tokenId, key }: Pick<IdempotentRequest, 'tokenId' | 'key'>,
  now: number,
): Query<{ readonly bytes: number | null } | null> =>
  first(
    (row) => ({ bytes: integerOrNull(row, 0) }),
    'SELECT bytes FROM keyed_requests WHERE token_id = $1 AND bucket_id = $2 AND key = $3 AND expires_at > $4',
    ...[tokenId, bucketId, key, now],
  )

/**
 * As addItems, once for each key of a token in the bucket: returns the items of the first request with the key, even if they were deleted
 * since. Throws Fault `idempotency-key-reused` if its fingerprint differs. `limitedBy` as in addLimitedItems; null for no limits.
 */
export function* addItemsOnce(
  bucketId: BucketId,
  items: readonly AddedItem[],
  request: IdempotentRequest,
  by?: Actor,
  limitedBy: TokenId | null = null,
): Work<readonly NewItem[]> {
  const first = yield* findRepeated(bucketId, request)
  if (first !== null) return first
  yield* addLimitedItems(bucketId, items, limitedBy, by)
  const added = items.map(({ bytes: _bytes, ...item }) => item)
  yield* storeRequest(bucketId, request, added)
  return added
}

/** Appends the items to the bucket in this order, with their bytes: all or none. Throws Fault `quota-exceeded`. */
export const addItems = (bucketId: BucketId, items: readonly AddedItem[], by?: Actor): Work<undefined> =>
  addLimitedItems(bucketId, items, null, by)

/** As addItems, and counts them in the limits with this id. Throws Fault `token-limit-exceeded` too. */
export function* addLimitedItems(
  bucketId: BucketId,
  items: readonly AddedItem[],
  limitedBy: TokenId | null,
  by?: Actor,
): Work<undefined> {
  const more = { items: items.length, bytes: items.reduce((sum, { size }) => sum + size, 0) }
  yield* countLimited(limitedBy, more, { used: more })
  yield (engine) => engine.requireRoom(bucketId, more)
  yield (engine) => engine.append(bucketId, addedBy(items, by))
}

/** To be called within a transaction that holds the lock of the bucket. */
export function* storeRequest(
  bucketId: BucketId,
  { tokenId, key, fingerprint, bytes = null, expiresAt }: Omit<IdempotentRequest, 'now'>,
  items: readonly NewItem[],
): Work<void> {
  yield* write(
    `INSERT INTO keyed_requests (token_id, bucket_id, key, fingerprint, items, bytes, expires_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (token_id, bucket_id, key) DO UPDATE SET fingerprint = excluded.fingerprint, items = excluded.items,
      bytes = excluded.bytes, expires_at = excluded.expires_at`,
    ...[tokenId, bucketId, key, fingerprint, serializeItems(items), bytes, expiresAt],
  )
}

/** Removes the records of requests that expired at `now` or before; returns how many. Compares again: a later request may have replaced a selected one. */
export const forgetRequests = (now: number): Work<number> =>
  write(
    `DELETE FROM keyed_requests WHERE expires_at <= $1 AND (token_id, bucket_id, key) IN
      (SELECT token_id, bucket_id, key FROM keyed_requests WHERE expires_at <= $1 ORDER BY expires_at LIMIT $2)`,
    ...[now, requestsPerStep],
  )

/** Each can have the items of a form. */
const requestsPerStep = 100

export const reads = { findRepeated, findKeyed }

const ofItems = { locks: ofBucket, changesItems: true }

export const writes = {
  ...auditedWritesOf({ addItems, addLimitedItems, addItemsOnce, editItem, labelItems }, ofItems),
  ...writesOf({ setPreview }, ofItems),
  ...writesOf({ forgetRequests }),
}
