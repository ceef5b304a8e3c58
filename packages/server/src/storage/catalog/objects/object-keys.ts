import type { ItemId } from '../../../core/ids.ts'
import { itemIdOfKey, itemKeyOf } from '../../../core/object-key-rules.ts'
import type { Actor } from '../../../core/token-rules.ts'
import { countLimited } from '../access/token-limits.ts'
import { addedBy } from '../audit/audit-events.ts'
import { auditedWritesOf, ofBucket } from '../declarations.ts'
import {
  itemRowColumns,
  placedItemColumnCount,
  placedItemColumns,
  readItemRow,
  readLiveItem,
} from '../items/item-rows.ts'
import { isLive } from '../items/items.ts'
import { removeItems } from '../items/trash.ts'
import type { AddedItem, BucketId, Item, ItemDetails, ItemRow, RemovedItems, TokenId } from '../records.ts'
import {
  all,
  bytes,
  eachEngine,
  first,
  integer,
  itemIdOf,
  type Query,
  type Row,
  record,
  text,
  textOrNull,
  type Work,
  write,
} from '../statements.ts'
import { countKey, takeKey } from './keyed-counts.ts'

// The rows of `object_keys`: a key names one item of its bucket. The transaction in which an item leaves its bucket removes its key (the engines, where they
// remove and move rows of items). Items without a key have one that is derived from their number (core/object-key-rules.ts), and no row.

/** What a key has besides its item. */
export interface KeyDetails {
  readonly etag: string
  /** The parts of which it was made, as a list in JSON; null for an object that was not uploaded in parts. */
  readonly parts: string | null
  readonly isPublic: boolean
  /** JSON. */
  readonly headers: string
  /** When the item was bound, or the headers replaced. Milliseconds since 1970. */
  readonly modifiedAt: number
}

/** An item with the key by which it was found; `details` is null for an item without a key of its own. */
export interface KeyedItem<Found extends ItemDetails = ItemDetails> {
  readonly key: string
  readonly item: Found
  readonly details: KeyDetails | null
}

/** A key with a new item. */
export interface NewKey extends KeyDetails {
  readonly key: string
  readonly item: AddedItem
}

/** What a key must have before a change: an etag, `*` for any item, or, with `ifNoneMatch`, none of these. */
interface KeyConditions {
  readonly ifMatch?: string
  readonly ifNoneMatch?: string
  /** The item that it must name. */
  readonly ifItem?: ItemId
}

/** Why a change was not made. */
export type KeyRefusal = 'key-unknown' | 'precondition-failed' | 'replacement-forbidden'

/** The items that a change has removed, and those whose blobs are to be deleted, or why it was not made. */
export type KeyChange = { readonly refused: KeyRefusal } | ({ readonly refused: null } & RemovedItems)

const changed = (removed: RemovedItems): KeyChange => ({ refused: null, ...removed })

/** The columns of KeyDetails, in which the names are none of `items`. */
const keyColumns = 'etag, parts, is_public, headers, modified_at'

/** Rows of keys, as they are joined with items. */
const keyRows = `SELECT key AS object_key, item_id, etag, parts, public AS is_public, headers, modified_at FROM object_keys`

/** Reads `keyColumns`, from this column on. */
export const readKeyDetails = (row: Row, column: number): KeyDetails => ({
  etag: text(row, column),
  parts: textOrNull(row, column + 1),
  isPublic: integer(row, column + 2) === 1,
  headers: text(row, column + 3),
  modifiedAt: integer(row, column + 4),
})

/** A key, from its bytes. */
export function keyTextOf(row: Row, column: number): string {
  const { buffer, byteOffset, byteLength } = bytes(row, column)
  return Buffer.from(buffer, byteOffset, byteLength).toString()
}

/** The entity tag of an item without a key. */
export const etagOfItem = ({ sha256 }: Pick<ItemDetails, 'sha256'>): string =>
  `${Buffer.from(sha256).toString('hex', 0, 16)}-1`

const keyedItem = `SELECT ${placedItemColumns}, ${keyColumns} FROM (${keyRows} WHERE bucket_id = $1 AND key = $2) AS keyed
  JOIN items ON items.id = keyed.item_id AND items.bucket_id = $1`

const unkeyedItem = `SELECT ${placedItemColumns}, items.seq FROM items
  WHERE items.id = $2 AND items.bucket_id = $1 AND NOT EXISTS (SELECT 1 FROM object_keys WHERE item_id = items.id)`

/** The item that a key names, also a derived key. Null if there is none, or if it has expired. */
export function* findKey(bucketId: BucketId, key: string): Query<KeyedItem<Item> | null> {
  const id = itemIdOfKey(key)
  if (id === null) {
    const found = yield* first(
      (row) => ({ item: readLiveItem(row), details: readKeyDetails(row, placedItemColumnCount) }),
      keyedItem,
      ...[bucketId, Buffer.from(key)],
    )
    return found?.item ? { key, item: found.item, details: found.details } : null
  }
  const found = yield* first(
    (row) => ({ item: readLiveItem(row), seq: integer(row, placedItemColumnCount) }),
    unkeyedItem,
    ...[bucketId, id],
  )
  return found?.item && itemKeyOf(found.seq, found.item) === key
    ? { key, item: found.item, details: null }
    : null
}

/** The keys of items of a bucket, by their ids. Items without a key of their own have none. */
export function* keysOfItems(bucketId: BucketId, ids: readonly ItemId[]): Query<ReadonlyMap<ItemId, string>> {
  return new Map(
    yield* all(
      (row) => [itemIdOf(row, 0), keyTextOf(row, 1)] as const,
      'SELECT item_id, key FROM object_keys WHERE item_id = ANY ($2::text[]) AND bucket_id = $1',
      ...[bucketId, ids],
    ),
  )
}

/** An item by its key, in a transaction that has locked its bucket. */
interface Bound {
  readonly id: ItemId
  readonly etag: string
}

/** The item of a row of `object_keys`, which may have expired. */
interface StoredBound extends Bound {
  readonly isLive: boolean
}

const findStored = (bucketId: BucketId, key: string, now: number): Query<StoredBound | null> =>
  first(
    (row) => ({ id: itemIdOf(row, 0), etag: text(row, 1), isLive: integer(row, 2) === 1 }),
    `SELECT item_id, etag, CAST(EXISTS (SELECT 1 FROM items WHERE items.id = item_id AND ${isLive('$3')}) AS int)
      FROM object_keys WHERE bucket_id = $1 AND key = $2`,
    ...[bucketId, Buffer.from(key), now],
  )

function* findBound(bucketId: BucketId, key: string, now: number): Query<Bound | null> {
  const id = itemIdOfKey(key)
  if (id === null) {
    const stored = yield* findStored(bucketId, key, now)
    return stored?.isLive === true ? stored : null
  }
  const found: ItemRow | null = yield* first(
    readItemRow,
    `SELECT ${itemRowColumns} FROM items WHERE bucket_id = $1 AND id = $2 AND ${isLive('$3')}
      AND NOT EXISTS (SELECT 1 FROM object_keys WHERE item_id = items.id)`,
    ...[bucketId, id, now],
  )
  return found !== null && itemKeyOf(found.seq, found.item) === key
    ? { id, etag: etagOfItem(found.item) }
    : null
}

function refusalOf(bound: Bound | null, { ifMatch, ifNoneMatch, ifItem }: KeyConditions): KeyRefusal | null {
  if (ifItem !== undefined && ifItem !== bound?.id) return 'precondition-failed'
  if (ifMatch !== undefined) {
    if (bound === null) return 'key-unknown'
    if (ifMatch !== '*' && ifMatch !== bound.etag) return 'precondition-failed'
  }
  if (ifNoneMatch !== undefined && bound !== null && (ifNoneMatch === '*' || ifNoneMatch === bound.etag))
    return 'precondition-failed'
  return null
}

/** A change of what a key names: under which conditions, and whether the caller may remove an item that has the key. */
export interface Replacement extends KeyConditions {
  readonly mayReplace: boolean
}

/** Frees a key for a new item: removes the item that has it, as removeItems does. To be called before `bindKey`, in its transaction. */
export function* freeKey(
  bucketId: BucketId,
  key: string,
  { mayReplace, ...conditions }: Replacement,
  by: Actor | undefined,
  now: number,
): Work<KeyChange> {
  const stored = yield* findStored(bucketId, key, now)
  const bound = stored?.isLive === true ? stored : null
  const refused = refusalOf(bound, conditions)
  if (refused !== null) return { refused }
  if (bound !== null && !mayReplace) return { refused: 'replacement-forbidden' }
  if (bound !== null) return changed(yield* removeItems(bucketId, [bound.id], by, now))
  // The item that has it has expired, and is not removed yet.
  if (stored !== null) yield* takeKey(bucketId, Buffer.from(key))
  return changed({ ids: [], tombstones: [] })
}

/** Adds an item to the end of its bucket, with a key that is free. The caller has counted it in the quota and the limits. */
export function* bindKey(
  bucketId: BucketId,
  { key, item, ...details }: NewKey,
  by: Actor | undefined,
): Work<void> {
  const { etag, parts, isPublic, headers, modifiedAt } = details
  yield (engine) => engine.append(bucketId, addedBy([item], by))
  yield* write(
    `INSERT INTO object_keys (bucket_id, key, item_id, item_size, etag, parts, public, headers, modified_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
    ...[bucketId, Buffer.from(key), item.id, item.size, etag, parts, isPublic ? 1 : 0, headers, modifiedAt],
  )
  yield* countKey(bucketId, item.id)
}

/**
 * Adds an item and binds its key, in one transaction with the removal of the item that had the key, if the conditions hold. Counts it in the limits with this id.
 * Throws Fault `quota-exceeded` and `token-limit-exceeded`.
 */
export function* putKey(
  bucketId: BucketId,
  added: NewKey,
  replacement: Replacement,
  limitedBy: TokenId | null,
  by?: Actor,
  now = Date.now(),
): Work<KeyChange> {
  const freed = yield* freeKey(bucketId, added.key, replacement, by, now)
  if (freed.refused !== null) return freed
  const more = { items: 1, bytes: added.item.size }
  yield* countLimited(limitedBy, more, { used: more })
  yield (engine) => engine.requireRoom(bucketId, more)
  yield* bindKey(bucketId, added, by)
  return freed
}

/** Removes the item that a key names, as removeItems does. */
export function* removeKey(
  bucketId: BucketId,
  key: string,
  conditions: KeyConditions,
  by?: Actor,
  now = Date.now(),
): Work<KeyChange> {
  const bound = yield* findBound(bucketId, key, now)
  const refused = refusalOf(bound, conditions)
  if (refused !== null) return { refused }
  return bound === null
    ? { refused: 'key-unknown' }
    : changed(yield* removeItems(bucketId, [bound.id], by, now))
}

/** The items of these keys, which are in hexadecimal digits, in a statement for all of them: another one for each would hold the lock of the bucket for long. */
const keyedItems = eachEngine(
  (engine) => `SELECT item_id FROM object_keys WHERE bucket_id = $1
    AND ${engine === 'sqlite' ? 'key IN (SELECT unhex(value) FROM json_each($2))' : "key = ANY (ARRAY(SELECT decode(value, 'hex') FROM unnest($2::text[]) AS value))"}
    AND EXISTS (SELECT 1 FROM items WHERE items.id = item_id AND ${isLive('$3')})`,
)

const unkeyedItems = `SELECT ${itemRowColumns} FROM items WHERE bucket_id = $1 AND id = ANY ($2::text[]) AND ${isLive('$3')}
  AND NOT EXISTS (SELECT 1 FROM object_keys WHERE item_id = items.id)`

/** Removes the items that these keys name, in one transaction. Ignores keys without an item. */
export function* removeKeys(
  bucketId: BucketId,
  keys: readonly string[],
  by?: Actor,
  now = Date.now(),
): Work<RemovedItems> {
  const hex = keys.map((key) => Buffer.from(key).toString('hex'))
  const keyed = yield* all((row) => itemIdOf(row, 0), keyedItems, bucketId, hex, now)
  const ids = keys.flatMap((key) => itemIdOfKey(key) ?? [])
  const found = ids.length === 0 ? [] : yield* all(readItemRow, unkeyedItems, bucketId, ids, now)
  const wanted = new Set(keys)
  const unkeyed = found.filter(({ seq, item }) => wanted.has(itemKeyOf(seq, item)))
  return yield* removeItems(bucketId, [...keyed, ...unkeyed.map(({ item }) => item.id)], by, now)
}

/** Changes of a key that keep its item. Members that are left out stay as they are. */
interface KeyEdit {
  readonly isPublic?: boolean
  readonly headers?: string
  readonly modifiedAt?: number
}

/** Changes what a key has besides its item. A key that is derived from an item has nothing to change, and is refused as an unknown one. */
export function* editKey(
  bucketId: BucketId,
  key: string,
  edit: KeyEdit,
  conditions: KeyConditions,
  by?: Actor,
  now = Date.now(),
): Work<KeyChange> {
  const bound = itemIdOfKey(key) === null ? yield* findBound(bucketId, key, now) : null
  const refused = refusalOf(bound, conditions)
  if (refused !== null) return { refused }
  if (bound === null) return { refused: 'key-unknown' }
  const { isPublic, headers = null, modifiedAt = null } = edit
  yield* write(
    `UPDATE object_keys SET public = coalesce($3, public), headers = coalesce($4, headers), modified_at = coalesce($5, modified_at)
    WHERE bucket_id = $1 AND key = $2`,
    ...[bucketId, Buffer.from(key), isPublic === undefined ? null : Number(isPublic), headers, modifiedAt],
  )
  const names = [...(isPublic === undefined ? [] : ['public']), ...(headers === null ? [] : ['headers'])]
  yield* record(by, (by) => ({ action: 'edit', by, bucketId, target: bound.id, detail: { changed: names } }))
  return changed({ ids: [], tombstones: [] })
}

/** The row of a key, as it is copied to another catalog. */
export interface TransferredKey extends KeyDetails {
  readonly key: Uint8Array
}

const transferredElements = {
  sqlite: 'json_each($1)',
  postgres: 'json_array_elements($1::text::json) AS element (value)',
}

const transferredRows = eachEngine(
  (
    engine,
  ) => `INSERT INTO object_keys (bucket_id, key, item_id, item_size, etag, parts, public, headers, modified_at)
    SELECT (value ->> 0)::int8, ${engine === 'sqlite' ? 'unhex(value ->> 1)' : "decode(value ->> 1, 'hex')"}, value ->> 2, (value ->> 3)::int8, value ->> 4,
      value ->> 5, (value ->> 6)::int4, value ->> 7, (value ->> 8)::int8 FROM ${transferredElements[engine]}`,
)

/** Adds the keys of items that another catalog had. */
export function* insertKeys(
  items: readonly {
    readonly bucketId: BucketId
    readonly item: Pick<ItemDetails, 'id' | 'size'>
    readonly key: TransferredKey | null
  }[],
): Work<void> {
  const rows = items.flatMap(({ bucketId, item, key }) =>
    key === null
      ? []
      : [
          [
            ...[bucketId, Buffer.from(key.key).toString('hex'), item.id, item.size, key.etag, key.parts],
            ...[Number(key.isPublic), key.headers, key.modifiedAt],
          ],
        ],
  )
  if (rows.length > 0) yield* write(transferredRows, JSON.stringify(rows))
}

export const reads = { findKey, keysOfItems }

export const writes = {
  ...auditedWritesOf({ putKey, removeKey, removeKeys, editKey }, { locks: ofBucket, changesItems: true }),
}
