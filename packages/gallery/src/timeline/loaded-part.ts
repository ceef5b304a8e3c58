import type { Media } from '@mediabucket/client'
import type { ItemStream } from './load-window.ts'
import { isAfter, type Order } from './shown-list.ts'

/** A part of a list without gaps. */
export interface LoadedPart {
  readonly items: readonly Media[]
  /** How many items are estimated to be before and after it; 0 only if there are none. */
  readonly before: number
  readonly after: number
  /** How many of the items before it were loaded since the last refresh, and not deleted: there are at least as many. */
  readonly passed: number
  /** Increased when these items replaced others instead of extending them. */
  readonly jumps: number
  /** Whether the last of these items were to be shown then, instead of the first. */
  readonly toEnd: boolean
}

/** What a part keeps when it is extended. */
export type History = Pick<LoadedPart, 'passed' | 'jumps' | 'toEnd'>

/** The estimate if it is only known that items follow. */
const someItems = 20

/** More items are not loaded again. */
const maxReread = 3000

/** Whether a part includes the first and the last item of the list. */
export const endsOf = ({ before, after }: LoadedPart) => ({ begins: before === 0, ends: after === 0 })

/**
 * Estimates the counts around items. `begins` and `ends` if they include the first and the last item of the list; `total` is
 * the number of all items, null if it is unknown.
 */
export function placeItems(
  items: readonly Media[],
  position: number,
  ends: ReturnType<typeof endsOf>,
  total: number | null,
  { passed, jumps, toEnd }: History,
): LoadedPart {
  // Others may have changed the list since the position was known. At the end of the list, the total determines it.
  const start = ends.ends && total !== null ? total - items.length : position
  const before = ends.begins ? 0 : Math.max(start, someItems)
  const rest = (total ?? 0) - before - items.length
  const after = ends.ends ? 0 : Math.max(rest, someItems)
  return { items, before, after, passed: ends.begins ? 0 : passed, jumps, toEnd }
}

/** How many items the list has, or, if `isExact` is false, a smaller number. */
export interface ItemCount {
  readonly count: number
  readonly isExact: boolean
}

export const countItems = ({ items, before, after, passed }: LoadedPart): ItemCount => ({
  count: passed + items.length,
  isExact: before + after === 0,
})

/** Reads the items of a part again, from a stream that begins with its first item or at the start of the list. */
export async function readAgain(
  stream: ItemStream,
  order: Order,
  { items: former, before, after }: LoadedPart,
): Promise<readonly Media[]> {
  const last = former.at(-1)
  const known = new Set(former.map(({ id }) => id))
  const [first] = former
  /** Whether the first item is passed: others of its millisecond may precede it in the stream. */
  let begun = before === 0 || first === undefined
  const skip = (item: Media) => {
    begun ||= known.has(item.id) || (first !== undefined && isAfter(order, item, first))
    return !begun
  }
  const items: Media[] = []
  while (!stream.ended && items.length < maxReread) {
    const [item] = await stream.take(1, skip)
    // The first item after the part shows that the part is complete.
    if (item && after > 0 && last && isAfter(order, item, last)) break
    if (item) items.push(item)
  }
  return items
}

/** A part without this many items at its start and its end. */
export const withoutEnds = (part: LoadedPart, fromStart: number, fromEnd: number): LoadedPart => ({
  ...part,
  items: part.items.slice(fromStart, part.items.length - fromEnd),
  before: part.before + fromStart,
  after: part.after + fromEnd,
  passed: part.passed + fromStart,
})
