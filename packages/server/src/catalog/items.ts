import type { Actor } from '../core/actor.ts'
import type { ItemId } from '../core/media-id.ts'
import { foldName } from '../core/name-search.ts'
import type { Audited } from './audit-log/events.ts'
import { raisedRevision } from './buckets.ts'
import { itemColumns, readItemDetails } from './item-columns.ts'
import type {
  AddedItem,
  BucketId,
  ContentId,
  EditedItem,
  IdempotentRequest,
  Item,
  ItemEdit,
  ItemPlace,
  ItemRows,
  ItemSelection,
  ItemTexts,
  NewItem,
  NewPreview,
  PageRows,
  RemovedItems,
  Servability,
} from './records.ts'
import { change, eachEngine, first, record, type Work } from './statements.ts'

/** The items of the catalog. */
export interface ItemCatalog {
  /** Page `page` (from 1) of ten items in upload order; no rows past the end. O(log n) at any depth. */
  page(bucketId: BucketId, page: number): Promise<PageRows>

  /**
   * Up to `limit` of the selected items: those that follow `after`, or the first ones if it is null. Takes O(log n) and a time
   * for each returned item; with a name, see docs/architecture/listing.md, Search by name. Throws Fault `token-revoked` if the bucket was deleted.
   */
  items(selection: ItemSelection, after: ItemPlace | null, limit: number): Promise<ItemRows>

  /** The current row of the item with this id, in any bucket. Never cached. */
  item(id: ItemId): Promise<Item | null>

  /**
   * For each id, whether an item of any bucket has it and can be served to everybody; all as of one moment. Reflects every change that
   * was committed before the call.
   */
  servability(ids: readonly ItemId[]): Promise<readonly Servability[]>

  /** Bytes that are stored in the catalog; null if their item was deleted. */
  content(id: ContentId): Promise<Uint8Array<ArrayBuffer> | null>

  /** Appends the items to the bucket in this order, with their bytes: all or none. Throws Fault `quota-exceeded`. */
  addItems(bucketId: BucketId, items: readonly AddedItem[], by?: Actor): Promise<void>

  /**
   * As addItems, once for each key of a token: returns the items of the first request with the key, even if they were deleted
   * since. Throws Fault `idempotency-key-reused` if its fingerprint differs.
   */
  addItemsOnce(
    bucketId: BucketId,
    items: readonly AddedItem[],
    request: IdempotentRequest,
    by?: Actor,
  ): Promise<readonly NewItem[]>

  /** The items of the first request with the key; null if there is none. Throws as addItemsOnce. */
  findRepeated(request: IdempotentRequest): Promise<readonly NewItem[] | null>

  /** Removes the records of requests that expired at `now` or before; returns how many. */
  forgetRequests(now: number): Promise<number>

  /**
   * Removes the items with these ids and their bytes in one transaction; ignores ids of other buckets. Adds a tombstone for each item whose bytes
   * or variants may be in the blob store. If the bucket has a trash, moves the items there instead. `ids` has no repeated id.
   */
  removeItems(bucketId: BucketId, ids: readonly ItemId[], by?: Actor, now?: number): Promise<RemovedItems>

  /** Changes an item of the bucket. With `expected`, only if it has these texts. An edit without a change is not a change of the bucket. */
  editItem(
    bucketId: BucketId,
    id: ItemId,
    edit: ItemEdit,
    expected: ItemTexts | null,
    by?: Actor,
  ): Promise<EditedItem>

  /**
   * Records what the first render of the item's variants has found, and increments the bucket's revision. Known values stay, and
   * nothing changes if the item has a ThumbHash.
   */
  setPreview(bucketId: BucketId, id: ItemId, preview: NewPreview): Promise<void>
}

/** Of the last change of a row that a backup may have copied before; only SQLite has this column. */
const markEdited = {
  sqlite: ', edited = (SELECT revision + 1 FROM buckets WHERE buckets.id = bucket_id)',
  postgres: '',
} as const

const revision = eachEngine(
  (engine) => `UPDATE buckets SET revision = ${raisedRevision[engine]} WHERE id = $1`,
)

const textsUpdate = eachEngine(
  (engine) => `UPDATE items SET filename = $3, alt_text = $4, caption = $5, renamed = coalesce($6, renamed),
    folded_name = $7${markEdited[engine]} WHERE id = $1 AND bucket_id = $2`,
)

/** As ItemCatalog.editItem. */
export function* editItem({
  bucketId,
  id,
  edit,
  expected,
  by,
}: Audited & {
  readonly bucketId: BucketId
  readonly id: ItemId
  readonly edit: ItemEdit
  readonly expected: ItemTexts | null
}): Work<EditedItem> {
  const item = yield* first(
    readItemDetails,
    `SELECT ${itemColumns} FROM items WHERE id = $1 AND bucket_id = $2`,
    ...[id, bucketId],
  )
  if (item === null) return 'missing'
  if (expected !== null && changedTexts(item, expected).length > 0) return 'changed'
  const edited = { ...item, ...edit }
  const changed = changedTexts(item, edited)
  if (changed.length === 0) return item
  const { filename, altText, caption, size } = edited
  yield* change(
    textsUpdate,
    ...[id, bucketId, filename, altText, caption, changed.includes('filename') ? 1 : null],
    filename === null ? null : foldName(filename),
  )
  yield* change(revision, bucketId)
  // The event has no values of texts but the new name.
  yield* record(by, (by) => {
    const detail = { changed: changed.map((text) => textColumns[text]) }
    return { action: 'edit', by, bucketId, target: id, name: filename, size, detail }
  })
  return edited
}

const textColumns = { filename: 'filename', altText: 'alt_text', caption: 'caption' } as const

const changedTexts = (item: ItemTexts, other: ItemTexts) =>
  (['filename', 'altText', 'caption'] as const).filter((text) => item[text] !== other[text])

const previewUpdate = eachEngine(
  (engine) => `UPDATE items SET thumbhash = $1, duration = coalesce(duration, $2),
    width = CASE WHEN $7::int4 = 1 THEN $3 ELSE coalesce(width, $3) END,
    height = CASE WHEN $7::int4 = 1 THEN $4 ELSE coalesce(height, $4) END${markEdited[engine]}
    WHERE id = $5 AND bucket_id = $6 AND (thumbhash IS NULL OR $7::int4 = 1)`,
)

/** As ItemCatalog.setPreview. */
export function* setPreview({
  bucketId,
  id,
  preview: { thumbhash, duration, width, height, isCorrection = false },
}: {
  readonly bucketId: BucketId
  readonly id: ItemId
  readonly preview: NewPreview
}): Work<undefined> {
  const changes = yield* change(
    previewUpdate,
    ...[thumbhash, duration, width, height, id, bucketId, isCorrection ? 1 : 0],
  )
  if (changes > 0) yield* change(revision, bucketId)
}
