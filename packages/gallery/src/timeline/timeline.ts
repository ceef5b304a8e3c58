import type { Client, Media } from '@mediabucket/client'
import { type ListOrder, maxListLimit } from '@mediabucket/client/rules'
import { computed, effect, type ReadonlySignal, signal, untracked } from '@preact/signals'
import { splitLabel } from '../router.ts'
import type { Connection } from '../service/connection.ts'
import type { MediaCache } from '../service/media-cache.ts'
import { createJumps, type Jumps } from './jumps.ts'
import { chunk, type ItemStream, openItemStream, skipUntil } from './load-window.ts'
import {
  countItems,
  endsOf,
  type History,
  type ItemCount,
  type LoadedPart,
  placeItems,
  readAgain,
  withoutEnds,
} from './loaded-part.ts'
import { type ItemFilter, isFiltered, keyOf, queryFrom, reverse, soleLabelOf } from './shown-list.ts'

/** The items of the bucket or those that match a filter, of which a part is loaded. */
export interface Timeline extends Omit<Jumps, 'abort'> {
  /** Null until it is loaded. */
  readonly loaded: ReadonlySignal<LoadedPart | null>
  readonly ids: ReadonlySignal<readonly string[]>
  /** Whether the loaded items are those of the former order or filter, because those of the chosen one are not loaded yet. */
  readonly outdated: ReadonlySignal<boolean>
  readonly order: ReadonlySignal<ListOrder>
  /** The number of all items of the bucket; null if it is unknown, a filter is chosen or the list has no positions: only that by time added has. */
  readonly total: ReadonlySignal<number | null>
  /** The number of items that match the filter, as far as they are loaded; null if none is chosen. */
  readonly matches: ReadonlySignal<ItemCount | null>
  /** The items of the whole list in its order, from one on, or from the start. Independent of what is loaded. */
  open(start: Media | null, batchSize: number): ItemStream
  /** Loads the items after (`forward`) or before the loaded ones. */
  extend(forward: boolean): Promise<void>
  /** Drops loaded items at the start and the end. */
  trim(fromStart: number, fromEnd: number): void
  /**
   * Loads the loaded part again, to show what was uploaded and deleted. Resolves to false if that failed, if another part was
   * being loaded, or if `canShow` returns false when the response arrives.
   */
  refresh(canShow?: () => boolean): Promise<boolean>
  remove(ids: readonly string[]): void
}

/** Items per request when the loaded part is loaded again. */
const refreshChunk = maxListLimit

export interface TimelineParts {
  readonly client: Client
  readonly connection: Connection
  readonly mediaCache: Pick<MediaCache, 'put'>
  readonly total: ReadonlySignal<number | null>
  /** Whether the timeline is shown. It loads nothing before. */
  readonly active: ReadonlySignal<boolean>
  /** When it changes, the items from the first one of a numbered page on replace the loaded ones. */
  readonly place: ReadonlySignal<{ readonly page: number } | null>
  /** When the order or the filter changes, the items from the start replace the loaded ones. */
  readonly order: ReadonlySignal<ListOrder>
  readonly filter: ReadonlySignal<ItemFilter>
}

export function createTimeline({
  client,
  connection,
  mediaCache,
  order,
  filter,
  ...parts
}: TimelineParts): Timeline {
  const loaded = signal<LoadedPart | null>(null)
  const outdated = signal(false)
  const total = computed(() =>
    isFiltered(filter.value) || keyOf(order.value) !== 'added' ? null : parts.total.value,
  )
  /** The last exact count of the items that match a filter: a change of the order does not change it. */
  const counted = signal<{ readonly filter: ItemFilter; readonly count: number } | null>(null)
  const matches = computed<ItemCount | null>(() => {
    if (loaded.value === null || !isFiltered(filter.value)) return null
    const found = countItems(loaded.value)
    if (found.isExact || counted.value?.filter !== filter.value) return found
    // A count of labels may have become too low.
    return counted.value.count < found.count ? found : { count: counted.value.count, isExact: true }
  })
  /** The streams that continue at the end and at the start of the loaded part; null if they must be opened. */
  const streams: { forward: ItemStream | null; backward: ItemStream | null } = {
    forward: null,
    backward: null,
  }
  /** The extension that is being loaded, by direction. */
  const extending = { forward: false, backward: false }

  const openPart = (direction: ListOrder, start: Media | null, batchSize = chunk): ItemStream =>
    openItemStream(client, connection, {
      ...queryFrom(direction, filter.value, start),
      batchSize,
      signal: jumps.abort,
    })

  function setLoaded(next: LoadedPart): void {
    for (const item of next.items) mediaCache.put(item)
    const { count, isExact } = countItems(next)
    if (isExact) counted.value = { filter: filter.peek(), count }
    loaded.value = next
  }

  /** The service counts the items of each label. */
  async function countByLabel(): Promise<void> {
    const now = filter.peek()
    const label = soleLabelOf(now)
    const part = loaded.peek()
    if (label === null || part === null || countItems(part).isExact) return
    const [key, value] = splitLabel(label)
    const keys = await connection.watch(() => client.labels({ key, limit: maxListLimit })).catch(() => [])
    const found = keys[0]?.values.find((known) => known.value === value)
    if (found !== undefined && filter.peek() === now) counted.value = { filter: now, count: found.items }
  }

  const place = (
    items: readonly Media[],
    position: number,
    ends: { begins: boolean; ends: boolean },
    history: History,
  ) => placeItems(items, position, ends, total.peek(), history)

  const jumps = createJumps({
    client,
    connection,
    order,
    total,
    loaded,
    open: openPart,
    onStart() {
      Object.assign(streams, { forward: null, backward: null })
      Object.assign(extending, { forward: false, backward: false })
    },
    show({ items, position, ends, forward, backward }) {
      Object.assign(streams, { forward, backward })
      const jump = { passed: 0, jumps: (loaded.peek()?.jumps ?? 0) + 1, toEnd: backward !== null }
      setLoaded(place(items, position, ends, jump))
      outdated.value = false
      if (counted.peek()?.filter !== filter.peek()) void countByLabel()
    },
  })
  const { loading, error, goTo, goToPage, goToStart, goToEnd } = jumps

  async function extend(forward: boolean): Promise<void> {
    const now = loaded.peek()
    const key = forward ? 'forward' : 'backward'
    if (now === null || loading.peek() || extending[key] || (forward ? now.after : now.before) === 0) return
    const { abort } = jumps
    extending[key] = true
    try {
      const edge = (forward ? now.items.at(-1) : now.items[0]) ?? null
      const direction = forward ? order.value : reverse(order.value)
      const continued = streams[key]
      const stream = continued ?? openPart(direction, edge)
      streams[key] = stream
      const more = await stream.take(chunk, continued ? undefined : skipUntil(edge, direction, has))
      const current = loaded.peek()
      if (abort.aborted || current === null) return
      const items = forward ? [...current.items, ...more] : [...more.toReversed(), ...current.items]
      const position = Math.max(0, forward ? current.before : current.before - more.length)
      const begins = forward ? current.before === 0 : stream.ended
      const ends = forward ? stream.ended : current.after === 0
      const passed = forward ? current.passed : Math.max(0, current.passed - more.length)
      setLoaded(place(items, position, { begins, ends }, { ...current, passed }))
    } catch {
      // `watch` has handled lost connections and invalid tokens. The next call opens the stream again.
      streams[key] = null
    } finally {
      if (!abort.aborted) extending[key] = false
    }
  }

  const ids = computed(() => loaded.value?.items.map(({ id }) => id) ?? [])
  const idSet = computed(() => new Set(ids.value))
  const has = (id: string) => idSet.peek().has(id)

  function trim(fromStart: number, fromEnd: number): void {
    const now = loaded.peek()
    if (now === null || extending.forward || extending.backward) return
    if (fromStart > 0) streams.backward = null
    if (fromEnd > 0) streams.forward = null
    setLoaded(withoutEnds(now, fromStart, fromEnd))
  }

  async function refresh(canShow = () => true): Promise<boolean> {
    const now = loaded.peek()
    if (now === null || outdated.peek() || error.peek() !== null) {
      if (!loading.peek() || error.peek() !== null) await goToStart()
      return error.peek() === null && !outdated.peek()
    }
    if (loading.peek() || extending.forward || extending.backward) return false
    const { abort } = jumps
    try {
      const begins = now.before === 0
      const stream = openPart(order.value, begins ? null : (now.items[0] ?? null), refreshChunk)
      const { items, ends } = await readAgain(stream, order.value, now)
      const current = loaded.peek()
      // The estimates around the same items change with the total, which is requested at the same time.
      if (abort.aborted || current?.items !== now.items || !canShow()) return false
      Object.assign(streams, { forward: null, backward: null })
      counted.value = null
      // Others may have deleted items before them, which are not loaded again.
      setLoaded(place(items, current.before, { begins, ends }, { ...current, passed: 0 }))
      void countByLabel()
      return true
    } catch {
      // `watch` has handled lost connections and invalid tokens; the items shown stay.
      return false
    }
  }

  let shown = { order: order.peek(), filter: filter.peek(), place: null as { readonly page: number } | null }
  connection.onRestored(() => void refresh())
  const stops = [
    effect(() => {
      const query = { order: order.value, filter: filter.value, place: parts.place.value }
      if (!parts.active.value) return
      const page = query.place === shown.place ? undefined : query.place?.page
      const isSame = query.order === shown.order && query.filter === shown.filter
      if (loaded.peek() !== null && isSame && page === undefined) return
      shown = query
      if (!isSame) outdated.value = loaded.peek() !== null
      untracked(() => void (page === undefined ? goToStart() : goToPage(page)))
    }),
    effect(() => {
      const now = total.value === null ? null : loaded.peek()
      if (now !== null) loaded.value = placeItems(now.items, now.before, endsOf(now), total.value, now)
    }),
  ]

  return {
    loaded,
    ids,
    outdated,
    loading,
    error,
    order,
    total,
    matches,
    open: (start, batchSize) =>
      openItemStream(client, connection, { ...queryFrom(order.value, filter.value, start), batchSize }),
    extend,
    trim,
    goTo,
    goToPage,
    goToStart,
    goToEnd,
    refresh,
    remove(removed) {
      const now = loaded.peek()
      if (now === null) return
      const gone = new Set(removed)
      const items = now.items.filter(({ id }) => !gone.has(id))
      const others = gone.size - (now.items.length - items.length)
      const passed = Math.max(0, now.passed - others)
      counted.value = null
      void countByLabel()
      if (items.length > 0 || now.before + now.after === 0) setLoaded({ ...now, items, passed })
      else void goTo(now.before)
    },
    close() {
      for (const stop of stops) stop()
      jumps.close()
    },
  }
}
