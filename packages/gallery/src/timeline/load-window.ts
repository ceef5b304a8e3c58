import type { Client, ItemOptions, Media } from '@mediabucket/client'
import { type ListOrder, maxListLimit } from '@mediabucket/client/rules'
import type { Connection } from '../service/connection.ts'
import { mediaIdOf } from '../service/urls.ts'
import { isAfter, reverse } from './shown-list.ts'

/** Items that one request loads: more than a screen shows. */
export const chunk = 100

/** Items that replace the loaded ones, and the streams that continue at their ends. */
export interface Window {
  readonly items: readonly Media[]
  /** Of the first item in the list, from 0. */
  readonly position: number
  /** Whether the first and the last item of the list are included. */
  readonly ends: { readonly begins: boolean; readonly ends: boolean }
  readonly forward: ItemStream | null
  readonly backward: ItemStream | null
}

/** Opens the items of the list in an order, from one on or from the start. */
export type OpenList = (direction: ListOrder, start: Media | null) => ItemStream

export async function loadStart(open: OpenList, order: ListOrder): Promise<Window> {
  const forward = open(order, null)
  const items = await forward.take(chunk)
  return { items, position: 0, ends: { begins: true, ends: forward.ended }, forward, backward: null }
}

export async function loadEnd(open: OpenList, order: ListOrder, total: number): Promise<Window> {
  const backward = open(reverse(order), null)
  const items = [...(await backward.take(chunk))].reverse()
  const position = total - items.length
  return { items, position, ends: { begins: backward.ended, ends: true }, forward: null, backward }
}

/** Loads the items from one on, which is at this position. */
export async function loadFrom(
  open: OpenList,
  order: ListOrder,
  start: Media,
  position: number,
): Promise<Window> {
  const forward = open(order, start)
  let found = false
  const items = await forward.take(chunk, (item) => {
    found ||= item.id === start.id || isAfter(order, item, start)
    return !found
  })
  return { items, position, ends: { begins: false, ends: forward.ended }, forward, backward: null }
}

/**
 * Skips the items of one millisecond that precede the edge in a stream that begins with it, among them items that were
 * dropped, and the loaded items.
 */
export function skipUntil(
  edge: Media | null,
  direction: ListOrder,
  isLoaded: (id: string) => boolean,
): (item: Media) => boolean {
  let found = edge === null
  return (item) => {
    found ||= isLoaded(item.id) || (edge !== null && isAfter(direction, item, edge))
    return !found || isLoaded(item.id)
  }
}

/** Items of a numbered page. */
export const pageSize = 10

/** Finds an item of the whole bucket by its numbered page and its index on it, or the last one of that page; null if there is none. */
export async function findOnPage(
  client: Client,
  connection: Connection,
  page: number,
  index: number,
): Promise<Media | null> {
  const { data } = await connection.watch(() => client.listPage(page))
  const url = data[Math.min(index, data.length - 1)]
  return url === undefined ? null : await connection.watch(() => client.describe(mediaIdOf(url)))
}

/** The items of a list from one place on, in chunks. */
export interface ItemStream {
  /** Returns up to `count` items that `skip` refuses not. Fewer only at the end. Rejects if a request fails. */
  take(count: number, skip?: (item: Media) => boolean): Promise<readonly Media[]>
  /** Whether the last item was returned. */
  readonly ended: boolean
}

/**
 * The request of the next chunk is sent when its first item is taken. Requests ask for one item more than `batchSize`, so that the end of the list
 * is usually known when its last item is taken.
 */
export function openItemStream(client: Client, connection: Connection, options: ItemOptions): ItemStream {
  const batchSize = Math.min((options.batchSize ?? chunk) + 1, maxListLimit)
  const items = client.items({ ...options, batchSize, urls: 'signed' })
  let ended = false
  let received = 0
  /** An item that was received and not taken. */
  let ahead: Media | null = null
  async function receive(): Promise<Media | null> {
    const waiting = ahead
    ahead = null
    if (waiting !== null || ended) return waiting
    const next = await connection.watch(() => items.next())
    if (next.done) ended = true
    else received += 1
    return next.done ? null : next.value
  }
  return {
    get ended() {
      return ended && ahead === null
    },
    async take(count, skip = () => false) {
      const taken: Media[] = []
      while (taken.length < count) {
        const item = await receive()
        if (item === null) break
        if (!skip(item)) taken.push(item)
      }
      // Not if that needs another request.
      if (received % batchSize > 0) ahead = await receive()
      return taken
    },
  }
}
