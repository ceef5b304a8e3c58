import { createCursors } from '../core/cursors.ts'
import { Fault } from '../core/faults.ts'
import type { ItemsQuery, PageNumber } from '../core/queries.ts'
import type * as schemas from '../http/openapi/schemas.ts'
import type { ValueOf } from '../http/openapi/schemas.ts'
import { listState } from '../storage/catalog/buckets.ts'
import type { Catalog } from '../storage/catalog/catalog.ts'
import { placeOf } from '../storage/catalog/item-lists.ts'
import type { BucketId, ItemDetails, ItemPlace, ItemSelection } from '../storage/catalog/records.ts'

/** Items of a bucket, and the state that they were read from (listState). */
interface ItemList {
  readonly state: string
  readonly items: readonly ItemDetails[]
  /** The cursor of the last item; null if no items follow. */
  readonly next: string | null
}

export type ListItems = ReturnType<typeof listItemsOperation>

/** Lists the items of a bucket by cursor (docs/interface.md, Lists of items). Throws Fault `cursor-malformed`. */
export function listItemsOperation({ catalog }: { readonly catalog: Pick<Catalog, 'epoch' | 'items'> }) {
  const cursors = createItemCursors(catalog.epoch)
  return async function listItems(
    bucketId: BucketId,
    { limit, after, ...filter }: ItemsQuery,
  ): Promise<ItemList> {
    const selection = { bucketId, ...filter }
    const place = after === null ? startOf(selection) : cursors.parse(selection, after)
    // One more than requested shows whether items follow.
    const { rows, examined, ...current } = await catalog.items(selection, place, limit + 1)
    const shown = rows.slice(0, limit)
    const last = rows.length > limit ? shown.at(-1) : undefined
    const end = last === undefined ? examined : placeOf(selection, last)
    return {
      state: listState(current),
      items: shown.map(({ item }) => item),
      next: end === null ? null : cursors.format(selection, end),
    }
  }
}

/** A numbered page of a list. */
interface NumberedItems {
  readonly state: string
  readonly items: readonly ItemDetails[]
  /** Null if it is unknown. */
  readonly total: number | null
  readonly hasMore: boolean
}

/** With filters, the last item of a numbered page has at most this position, because the items before it are read. */
const maxFilteredPosition = 2_000

const byCursor = 'repeat the request without page and per_page, and follow next_cursor.'

export type ListNumbered = ReturnType<typeof listNumberedOperation>

/** Lists a numbered page of the items of a bucket (docs/interface.md K18). Throws Fault `parameter-malformed`. */
export function listNumberedOperation({ catalog }: { readonly catalog: Pick<Catalog, 'items' | 'itemsAt'> }) {
  return async function listNumbered(
    bucketId: BucketId,
    { limit: _limit, after: _after, page: _page, ...filter }: ItemsQuery,
    { number, size }: PageNumber,
  ): Promise<NumberedItems> {
    const first = (number - 1) * size
    const { order, ...selected } = filter
    if (Object.values(selected).every((value) => value == null)) {
      // Above 2⁵³ the product is rounded, but exceeds every total.
      const { items, total, ...current } = await catalog.itemsAt(bucketId, order, first, size)
      return { state: listState(current), items, total, hasMore: first + items.length < total }
    }
    if (first + size > maxFilteredPosition)
      throw pageRefused(
        `With a filter, or an order by name or by time taken, page × per_page is at most ${maxFilteredPosition}. For more, ${byCursor}`,
      )
    const selection = { bucketId, ...filter }
    const { rows, examined, ...current } = await catalog.items(
      selection,
      startOf(selection),
      first + size + 1,
    )
    // Each page is read from the start of the list. So the next one would end at the same place.
    if (examined !== null && rows.length < first + size)
      throw pageRefused(`The filters exclude too many items to read this page. Instead, ${byCursor}`)
    const isComplete = examined === null && rows.length <= first + size
    return {
      state: listState(current),
      items: rows.slice(first, first + size).map(({ item }) => item),
      total: isComplete ? rows.length : null,
      hasMore: rows.length > first + size || examined !== null,
    }
  }
}

/** The place after which a list begins; null for the whole list. In a list by name, which alone has a start, the times of places are not compared. */
const startOf = ({ order, startName = null }: ItemSelection): ItemPlace | null =>
  startName === null
    ? null
    : { name: startName, seq: order === 'oldest' ? -1 : Number.MAX_SAFE_INTEGER, createdAt: 0 }

const pageRefused = (detail: string): Fault =>
  new Fault('parameter-malformed', detail, { parameters: [{ parameter: 'page', detail }] })

/** Keys in one response. */
const maxKeys = 100

export type ListLabels = ReturnType<typeof listLabelsOperation>

/** Lists the labels of a bucket, or those with one key (docs/interface.md K15). */
export function listLabelsOperation({ catalog }: { readonly catalog: Pick<Catalog, 'labelKeys'> }) {
  return async function listLabels(
    bucketId: BucketId,
    key: string | null,
    limit: number,
  ): Promise<ValueOf<typeof schemas.LabelList>> {
    // One more of each shows whether others follow.
    const keys = await catalog.labelKeys(bucketId, key, { maxKeys: maxKeys + 1, maxValues: limit + 1 })
    const data = keys.slice(0, maxKeys).map(({ key, values }) => ({
      key,
      values: values.slice(0, limit),
      has_more: values.length > limit,
    }))
    return { data, has_more: keys.length > maxKeys }
  }
}

const placeShape = /^(0|[1-9]\d*)\.(0|-?[1-9]\d*)(?:\.(.*))?$/s

/** Formats and parses cursors. A cursor is valid for one selection of items, and until the data are restored. */
export function createItemCursors(epoch: string) {
  const cursors = createCursors(epoch)
  return {
    format: (selection: ItemSelection, place: ItemPlace) =>
      cursors.format(keyOf(selection), textOf(selection, place)),
    /** Throws Fault `cursor-malformed` (docs/interface.md K6). */
    parse(selection: ItemSelection, cursor: string): ItemPlace {
      const found = cursors.parse(keyOf(selection), cursor)
      const [, seq, createdAt, key] = (found?.isOwn && placeShape.exec(found.place)) || []
      if (seq !== undefined)
        return {
          ...{ seq: Number(seq), createdAt: Number(createdAt) },
          ...(key === undefined ? {} : { [selection.by === 'name' ? 'name' : 'path']: key }),
        }
      const detail =
        'after accepts the next_cursor of a response with the same token, order and filters, unchanged.'
      throw new Fault('cursor-malformed', detail, { parameters: [{ parameter: 'after', detail }] })
    },
  }
}

/** What distinguishes the cursors of a selection. */
function keyOf(selection: ItemSelection): readonly unknown[] {
  const { bucketId, order, by = null, kind, from, to, name } = selection
  const { labels = null, sha256 = null, path = null, startName = null } = selection
  return [
    ...[bucketId, order, kind, from, to],
    ...(name === null ? [] : [name]),
    ...(labels === null ? [] : [labels]),
    ...(sha256 === null ? [] : ['sha256', sha256]),
    ...(path === null ? [] : ['path', path]),
    ...(by === null ? [] : ['by', by]),
    ...(startName === null ? [] : ['start', startName]),
  ]
}

/** Only lists in the order of paths continue after a path, and those in the order of names after a name. */
function textOf(
  { by = null, sha256 = null, path = null }: ItemSelection,
  { seq, createdAt, ...end }: ItemPlace,
): string {
  const isByPath = path !== null && sha256 === null && by === null
  const key = by === 'name' ? end.name : isByPath ? (end.path ?? null) : undefined
  return `${seq}.${createdAt}${key === undefined ? '' : `.${key}`}`
}
