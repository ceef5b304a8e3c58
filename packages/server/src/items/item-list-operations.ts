import { createCursors } from '../core/cursors.ts'
import { Fault } from '../core/faults.ts'
import type { ItemsQuery, PageNumber } from '../core/queries.ts'
import { ReadLengths } from '../core/read-lengths.ts'
import type * as schemas from '../http/openapi/schemas.ts'
import type { ValueOf } from '../http/openapi/schemas.ts'
import { listState, tooManyExpired } from '../storage/catalog/buckets.ts'
import type { Catalog } from '../storage/catalog/catalog.ts'
import { filtersOf } from '../storage/catalog/lists/item-filters.ts'
import { maxPassed, placeOf } from '../storage/catalog/lists/item-lists.ts'
import type { BucketId, ItemDetails, ItemPlace, ItemSelection, LabelKey } from '../storage/catalog/records.ts'

/** A list of items, which were added to `add`. */
interface ItemList {
  /** The state that the items were read from (listState). */
  readonly state: string
  /** The cursor of the last item; null if no items follow. */
  readonly next: string | null
}

export type ListItems = ReturnType<typeof listItemsOperation>

/** Lists the items of a bucket by cursor (docs/interface.md, Lists of items). Throws Fault `cursor-malformed`. */
export function listItemsOperation({
  catalog,
}: {
  readonly catalog: Pick<Catalog, 'epoch' | 'items' | 'hasHadRevision'>
}) {
  const cursors = createItemCursors(catalog.epoch)
  const reads = new ReadLengths()
  return async function listItems(
    bucketId: BucketId,
    { limit, after, keys: _keys, ...filter }: ItemsQuery,
    sink: ItemSink,
  ): Promise<ItemList> {
    const selection = { bucketId, ...filter }
    const states: string[] = []
    const from = after === null ? null : cursors.parse(selection, after)
    let place = from === null ? startOf(selection) : from.place
    /** Of the read before. */
    let revision = from?.revision ?? null
    for (let left = limit; ; ) {
      const length = Math.min(left, reads.next(bucketId))
      // One more than requested shows whether items follow.
      const { rows, examined, ...current } = await catalog.items(selection, place, length + 1)
      // After the read: if the data have gone back, other items may have the places of those that were listed before.
      if (revision !== null && revision !== current.revision)
        if (!(await catalog.hasHadRevision(bucketId, revision))) throw cursorMalformed()
      revision = current.revision
      states.push(listState(current))
      const read = rows.slice(0, length)
      const bytesBefore = sink.bytes
      const added = await sink.add(read.map(({ item }) => item))
      reads.note(bucketId, added, sink.bytes - bytesBefore)
      const last = read[added - 1]
      if (last !== undefined) place = placeOf(selection, last)
      left -= added
      if (added === read.length) {
        if (rows.length <= length) place = examined
        else if (left > 0) {
          await sink.pause()
          continue
        }
      }
      const next = place === null ? null : cursors.format(selection, place, revision)
      return { state: joinStates(states), next }
    }
  }
}

/** Where the items of a list go. */
export interface ItemSink {
  /** Returns how many of the items it had room for. */
  readonly add: (items: readonly ItemDetails[]) => Promise<number>
  /** The bytes of the items that it has. */
  readonly bytes: number
  /** Lets other requests run between two reads. */
  readonly pause: () => Promise<void>
}

/** An item in a list that shows keys; null if it has none. */
export interface ListedItem extends ItemDetails {
  readonly key?: string | null
}

export type AddKeys = ReturnType<typeof addKeysOperation>

/** Adds to items of a bucket their keys (docs/interface.md K21). An item whose key has gone since it was read has none. */
export function addKeysOperation({ catalog }: { readonly catalog: Pick<Catalog, 'keysOfItems'> }) {
  return async function addKeys(
    bucketId: BucketId,
    items: readonly ItemDetails[],
  ): Promise<readonly ListedItem[]> {
    if (items.length === 0) return []
    const keys = await catalog.keysOfItems(
      bucketId,
      items.map(({ id }) => id),
    )
    return items.map((item) => ({ ...item, key: keys.get(item.id) ?? null }))
  }
}

/** The state of a list that was read in several steps. If the bucket has changed in the meantime, it is no state of the bucket. */
const joinStates = (states: readonly string[]): string =>
  states.every((state) => state === states[0]) ? (states[0] ?? '') : states.join('-')

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
    { limit: _limit, after: _after, page: _page, keys: _keys, ...filter }: ItemsQuery,
    { number, size }: PageNumber,
    pause: ItemSink['pause'],
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
    let part = await readPart(catalog, selection, { first, size, pause })
    // A page that mixes two states of the bucket can have an item twice, so it is read again.
    for (let tries = 1; new Set(part.states).size > 1 && tries < maxTries; tries += 1)
      part = await readPart(catalog, selection, { first, size, pause })
    const { states, items, count, isCut } = part
    // Each page is read from the start of the list. So the next one would end at the same place.
    if (isCut && count < first + size)
      throw pageRefused(`The filters exclude too many items to read this page. Instead, ${byCursor}`)
    return {
      state: joinStates(states),
      items,
      total: !isCut && count <= first + size ? count : null,
      hasMore: count > first + size || isCut,
    }
  }
}

/** Items of one read of a numbered page. Each read may examine as many items as a response by cursor. */
const partLength = 100

/** Reads of a page while the bucket changes. */
const maxTries = 3

/** Reads a list up to the end of a page and one item more, and returns the items of the page. */
async function readPart(
  catalog: Pick<Catalog, 'items'>,
  selection: ItemSelection,
  {
    first,
    size,
    pause,
  }: { readonly first: number; readonly size: number; readonly pause: ItemSink['pause'] },
) {
  const states: string[] = []
  const items: ItemDetails[] = []
  const end = first + size + 1
  let count = 0
  for (let place = startOf(selection); ; ) {
    const length = Math.min(end - count, partLength)
    const { rows, examined, ...current } = await catalog.items(selection, place, length)
    states.push(listState(current))
    items.push(
      ...rows.slice(Math.max(0, first - count), Math.max(0, end - 1 - count)).map(({ item }) => item),
    )
    count += rows.length
    if (examined !== null && current.expired > maxPassed) throw tooManyExpired()
    const last = rows.at(-1)
    if (examined !== null || rows.length < length || count >= end || last === undefined)
      return { states, items, count, isCut: examined !== null }
    place = placeOf(selection, last)
    await pause()
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
export function listLabelsOperation({ catalog }: { readonly catalog: Pick<Catalog, 'listLabels'> }) {
  return async function listLabels(
    bucketId: BucketId,
    key: string | null,
    limit: number,
    pause: ItemSink['pause'],
  ): Promise<ValueOf<typeof schemas.LabelList>> {
    // One more of each shows whether others follow. Of many values, those of each key are read by themselves.
    const isShort = limit <= shortLimit
    const keys = await catalog.listLabels(bucketId, key, {
      maxKeys: maxKeys + 1,
      maxValues: isShort ? limit + 1 : 1,
    })
    const shown = keys.slice(0, maxKeys)
    const share = maxLabelBytes / shown.length
    const data = []
    for (const { key, values } of shown) {
      if (!isShort) await pause()
      const read = isShort ? values : await readValues(catalog, bucketId, key, limit + 1)
      const first = firstWithin(share, read.slice(0, limit))
      data.push({ key, values: first, has_more: read.length > first.length })
    }
    return { data, has_more: keys.length > maxKeys }
  }
}

/** The largest number of values of a key that are read for all keys at once. */
const shortLimit = 20

/** Bytes of the values of one response, which its keys share evenly. */
const maxLabelBytes = 786_432

async function readValues(
  catalog: Pick<Catalog, 'listLabels'>,
  bucketId: BucketId,
  key: string,
  maxValues: number,
): Promise<LabelKey['values']> {
  const [found] = await catalog.listLabels(bucketId, key, { maxKeys: 1, maxValues })
  return found?.values ?? []
}

/** The first values whose JSON has up to this many bytes, and at least one. */
function firstWithin(bytes: number, values: LabelKey['values']): LabelKey['values'] {
  let left = bytes
  const end = values.findIndex((value, index) => {
    left -= Buffer.byteLength(JSON.stringify(value))
    return left < 0 && index > 0
  })
  return end === -1 ? values : values.slice(0, end)
}

const placeShape = /^(0|[1-9]\d*)\.(0|-?[1-9]\d*)\.([0-9a-z]+)(?:\.(.*))?$/s

const cursorMalformed = (): Fault => {
  const detail =
    'after accepts the next_cursor of a response with the same token, order and filters, unchanged.'
  return new Fault('cursor-malformed', detail, { parameters: [{ parameter: 'after', detail }] })
}

/**
 * Formats and parses cursors. A cursor is valid for one selection of items, and until the data are restored. It has the revision of the bucket
 * at which its place was read.
 */
export function createItemCursors(epoch: string) {
  const cursors = createCursors(epoch)
  return {
    format: (selection: ItemSelection, place: ItemPlace, revision: number) =>
      cursors.format(keyOf(selection), textOf(selection, place, revision)),
    /** Throws Fault `cursor-malformed` (docs/interface.md K6). */
    parse(
      selection: ItemSelection,
      cursor: string,
    ): { readonly place: ItemPlace; readonly revision: number } {
      const found = cursors.parse(keyOf(selection), cursor)
      const [, seq, createdAt, revision, key] = (found?.isOwn && placeShape.exec(found.place)) || []
      if (seq === undefined || revision === undefined) throw cursorMalformed()
      const place = {
        ...{ seq: Number(seq), createdAt: Number(createdAt) },
        ...(key === undefined ? {} : { [keyNameOf(selection)]: key }),
      }
      return { place, revision: Number.parseInt(revision, 36) }
    },
  }
}

/** Filters whose values are without their names in the key of a cursor. Others are in the order in which the query has them. */
const withoutName = new Set(['kind', 'from', 'to', 'name', 'labels'])

/** What distinguishes the cursors of a selection. */
function keyOf(selection: ItemSelection): readonly unknown[] {
  const { bucketId, order, kind, from, to, name, labels = null, by = null, startName = null } = selection
  return [
    ...[bucketId, order, kind, from, to],
    ...(name === null ? [] : [name]),
    ...(labels === null ? [] : [labels]),
    ...filtersOf(selection)
      .filter(([filter]) => !withoutName.has(filter))
      .flat(),
    ...(by === null ? [] : ['by', by]),
    ...(startName === null ? [] : ['start', startName]),
  ]
}

/** What a list is ordered by, before the number. */
const keyNameOf = ({ by, key }: ItemSelection): 'name' | 'key' | 'path' =>
  by === 'name' ? 'name' : key != null ? 'key' : 'path'

/** Only lists in the order of paths continue after a path, those in the order of names after a name, and those in the order of keys after a key. */
function textOf(
  { by = null, sha256 = null, path = null, key: ofKeys = null }: ItemSelection,
  { seq, createdAt, ...end }: ItemPlace,
  revision: number,
): string {
  const isByPath = path !== null && sha256 === null && by === null
  const ofPlace = isByPath ? (end.path ?? null) : undefined
  const key = by === 'name' ? end.name : ofKeys !== null ? end.key : ofPlace
  return `${seq}.${createdAt}.${revision.toString(36)}${key === undefined ? '' : `.${key}`}`
}
