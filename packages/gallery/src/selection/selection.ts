import type { Media } from '@mediabucket/client'
import { maxListLimit } from '@mediabucket/client/rules'
import { computed, type ReadonlySignal, signal } from '@preact/signals'
import type { MediaCache } from '../service/media-cache.ts'
import { isAfter } from '../timeline/shown-list.ts'
import type { Timeline } from '../timeline/timeline.ts'

/** The selected items, on all pages. */
export interface Selection {
  readonly ids: ReadonlySignal<ReadonlySet<string>>
  readonly count: ReadonlySignal<number>
  /** The item from which a range begins; null if none was clicked. */
  readonly lastClicked: string | null
  toggle(id: string): void
  /** Selects the items of a list from the last one clicked to this one. */
  extendTo(id: string, page: readonly string[]): void
  add(ids: readonly string[]): void
  remove(ids: readonly string[]): void
  clear(): void
}

export function createSelection(): Selection {
  const ids = signal<ReadonlySet<string>>(new Set())
  let lastClicked: string | null = null
  const add = (added: readonly string[]) => {
    ids.value = new Set([...ids.value, ...added])
  }
  const remove = (removed: readonly string[]) => {
    const left = new Set(ids.value)
    for (const id of removed) left.delete(id)
    ids.value = left
  }
  return {
    ids,
    get lastClicked() {
      return lastClicked
    },
    count: computed(() => ids.value.size),
    toggle(id) {
      if (ids.value.has(id)) remove([id])
      else add([id])
      lastClicked = id
    },
    extendTo(id, page) {
      add(rangeBetween(page, lastClicked, id))
      lastClicked = id
    },
    add,
    remove,
    clear() {
      ids.value = new Set()
      lastClicked = null
    },
  }
}

/** The entries between two of a list, both included, in either direction; `to` alone if `from` is not in the list. */
export function rangeBetween<T>(all: readonly T[], from: T | null, to: T): T[] {
  const start = from === null ? -1 : all.indexOf(from)
  const end = all.indexOf(to)
  if (end === -1) return []
  if (start === -1) return [to]
  return all.slice(Math.min(start, end), Math.max(start, end) + 1)
}

/** Selects items that are not on the screen, and finds their properties. */
export interface SelectMany {
  /** Whether items are being selected. */
  readonly busy: ReadonlySignal<boolean>
  /** Selects all items of the timeline, also those that are not loaded. */
  all(): Promise<void>
  /** Selects the items of the timeline from the last one clicked to this one. */
  extendTo(id: string): Promise<void>
  /** Ends what is in progress and clears the selection. */
  clear(): void
  /** Returns the media objects of items that exist, in the order of `ids`. */
  describe(ids: readonly string[]): Promise<readonly Media[]>
}

/** Items that are requested and selected together. */
const batchSize = maxListLimit
/** More items than this are looked up in the whole list instead of one by one. */
const maxSingle = 20

export function createSelectMany(
  timeline: Pick<Timeline, 'ids' | 'order' | 'open'>,
  selection: Selection,
  mediaCache: Pick<MediaCache, 'get' | 'load'>,
): SelectMany {
  const busy = signal(false)
  let run = 0

  /** Calls `use` with all items from `start` on until it returns false or another run begins; `use` may select them. */
  async function read(start: Media | null, use: (items: readonly Media[]) => boolean): Promise<void> {
    run += 1
    const own = run
    busy.value = true
    try {
      const stream = timeline.open(start, batchSize)
      for (let wanted = true; wanted && own === run && !stream.ended; ) {
        const items = await stream.take(batchSize)
        wanted = own === run && use(items)
      }
    } catch {
      // The connection banner shows why it ended; what was read so far stays selected.
    } finally {
      if (own === run) busy.value = false
    }
  }

  return {
    busy,
    all: () =>
      read(null, (items) => {
        selection.add(items.map(({ id }) => id))
        return true
      }),
    async extendTo(id) {
      const { lastClicked } = selection
      const loaded = timeline.ids.value
      if (lastClicked === null || loaded.includes(lastClicked)) return selection.extendTo(id, loaded)
      const [from, to] = await Promise.all([mediaCache.load(lastClicked), mediaCache.load(id)])
      if (from === null || to === null) return selection.extendTo(id, loaded)
      const order = timeline.order.value
      const [start, end] = isAfter(order, from, to) ? [to, from] : [from, to]
      // Of two items of one millisecond, the stream shows which is the first.
      const ends = new Set([start.id, end.id])
      let inside = false
      await read(start, (items) => {
        const ids = items.map((item) => item.id)
        const first = inside ? 0 : ids.findIndex((other) => ends.has(other))
        if (first < 0) return !items.some((item) => isAfter(order, item, end))
        if (!inside) ends.delete(ids[first] ?? '')
        inside = true
        const last = ids.findIndex((other) => ends.has(other))
        selection.add(ids.slice(first, last < 0 ? undefined : last + 1))
        return last < 0 && !items.some((item) => isAfter(order, item, end))
      })
      selection.extendTo(id, [id])
    },
    clear() {
      run += 1
      busy.value = false
      selection.clear()
    },
    async describe(ids) {
      const found = new Map<string, Media>()
      for (const id of ids) {
        const media = mediaCache.get(id).peek()
        if (media) found.set(id, media)
      }
      const missing = new Set(ids.filter((id) => !found.has(id)))
      if (missing.size > maxSingle) {
        const stream = timeline.open(null, batchSize)
        while (missing.size > 0 && !stream.ended)
          for (const media of await stream.take(batchSize))
            if (missing.delete(media.id)) found.set(media.id, media)
      }
      for (const id of missing) {
        const media = await mediaCache.load(id)
        if (media) found.set(id, media)
      }
      return ids.flatMap((id) => found.get(id) ?? [])
    },
  }
}
