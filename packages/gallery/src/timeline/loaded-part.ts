import type { Media } from '@mediabucket/client'
import type { ListOrder } from '@mediabucket/client/rules'
import type { ItemStream } from './load-window.ts'
import { isAfter } from './shown-list.ts'

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

/**
 * Reads the items of a part again, from a stream that begins with its first item or at the start of the list. Any number of other
 * items can have the millisecond or the name of the first and the last item: they stay out of the part. `ends` if the part includes the last item of the list.
 */
export async function readAgain(
  stream: ItemStream,
  order: ListOrder,
  { items: former, before, after }: LoadedPart,
): Promise<{ readonly items: readonly Media[]; readonly ends: boolean }> {
  const [first] = former
  const last = former.at(-1)
  const known = new Map(former.map((item) => [item.id, item]))
  /** Whether an item was loaded, and a rename did not move it. */
  const remains = (item: Media) => {
    const same = known.get(item.id)
    return same !== undefined && !isAfter(order, item, same) && !isAfter(order, same, item)
  }
  let begun = before === 0 || first === undefined
  const skip = (item: Media) => {
    begun ||= remains(item) || (first !== undefined && isAfter(order, item, first))
    return !begun
  }
  let passedLast = false
  const items: Media[] = []
  /** Whether an item follows the part. If its last item was deleted, the part is not extended by items that are equal to it. */
  const follows = (item: Media) => {
    if (after === 0 || last === undefined) return false
    if (passedLast || isAfter(order, item, last)) return true
    return items.length >= former.length && !remains(item) && !isAfter(order, last, item)
  }
  while (!stream.ended && items.length < maxReread) {
    const [item] = await stream.take(1, skip)
    if (item === undefined) break
    if (follows(item)) return { items, ends: false }
    items.push(item)
    passedLast ||= item.id === last?.id && remains(item)
  }
  return { items, ends: stream.ended }
}

/** A part without this many items at its start and its end. */
export const withoutEnds = (part: LoadedPart, fromStart: number, fromEnd: number): LoadedPart => ({
  ...part,
  items: part.items.slice(fromStart, part.items.length - fromEnd),
  before: part.before + fromStart,
  after: part.after + fromEnd,
  passed: part.passed + fromStart,
})
