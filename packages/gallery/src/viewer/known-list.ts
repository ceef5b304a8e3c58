/** Items on either side of the open one that can be swiped to at once. */
export const reach = 30

/** A part of the list without gaps, and how many items are before and after it; 0 only if there are none. */
interface ListPart {
  readonly ids: readonly string[]
  readonly before: number
  readonly after: number
}

/** What is known of the list around the open item. */
export interface KnownList {
  /** Without gaps. */
  readonly ids: readonly string[]
  /** The index of the first item of the loaded part in `ids`; null if the part is elsewhere in the list. */
  readonly loadedAt: number | null
}

/**
 * The loaded part, continued by the items that were swiped through. Another part of the list may replace the loaded one while
 * an item is open: its neighbours stay known, so that keys and buttons keep their effect while the items around it are loading again.
 */
export function knownList(part: ListPart, swiped: readonly string[], open: string): KnownList {
  const { ids, before, after } = part
  const loaded = new Set(ids)
  const isSeparate = before + after > 0 && !swiped.some((id) => loaded.has(id))
  if (isSeparate && !loaded.has(open) && swiped.includes(open)) return { ids: swiped, loadedAt: null }
  const start = swiped.indexOf(ids[0] ?? '')
  const end = swiped.indexOf(ids.at(-1) ?? '')
  const head = before > 0 && start > 0 ? swiped.slice(0, start) : []
  const tail = after > 0 && end >= 0 ? swiped.slice(end + 1) : []
  return { ids: [...head, ...ids, ...tail], loadedAt: head.length }
}

/** The items to swipe through. They change as rarely as possible, because new ones open PhotoSwipe again. */
export function itemsAround(
  known: readonly string[],
  swiped: readonly string[],
  open: string,
): readonly string[] {
  const index = known.indexOf(open)
  if (index < 0) return swiped
  const place = swiped.indexOf(open)
  const isWithin = place > 0 && place < swiped.length - 1
  const all = new Set(known)
  if (isWithin && swiped.every((id) => all.has(id))) return swiped
  return known.slice(Math.max(0, index - reach), index + reach + 1)
}
