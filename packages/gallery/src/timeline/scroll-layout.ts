import type { Media } from '@mediabucket/client'
import {
  arrange,
  joinRows,
  type Lines,
  type Measures,
  type PlacedRow,
  placeRows,
  type Row,
} from './layout.ts'
import type { LoadedPart } from './loaded-part.ts'

/** The part of the list that is on the screen. Pixels from the top of the list. */
export interface View {
  readonly top: number
  readonly height: number
}

/** Where the loaded part is shown, between estimated spaces for the items that are not loaded. */
export interface ScrollLayout {
  readonly part: LoadedPart
  readonly measures: Measures
  readonly rows: readonly Row[]
  /** Which of them are beside one another. */
  readonly lines: Lines
  readonly placed: readonly PlacedRow[]
  /** The space above the loaded part. Pixels. */
  readonly above: number
  /** The height of the loaded part. Pixels. */
  readonly height: number
  /** The space below the loaded part. Pixels. */
  readonly below: number
}

/**
 * Browsers limit the height of an element; the lowest limit is 2^24 device pixels. In larger lists an item that is not loaded has less
 * space than one that is.
 */
const maxHeight = 4_000_000
/** A list that is scrolled by less is at its start: new items appear there. Pixels. */
const startMargin = 8

/**
 * Lays out a part. The items on the screen stay where they are; if they cannot, because the space above was estimated wrong,
 * `scrollBy` is the distance by which they move. If the part replaces another one, `scrollTo` is the new top of the view.
 */
export function layOut(
  former: ScrollLayout | null,
  part: LoadedPart,
  measures: Measures,
  view: View,
): { readonly layout: ScrollLayout; readonly scrollBy: number; readonly scrollTo: number | null } {
  const extended = former?.part.jumps === part.jumps ? former : null
  const atStart = view.top <= startMargin && part.before === 0
  const kept = extended && !atStart && sameShape(extended.measures, measures) ? extended : null
  const rows = arrange(part.items, kept?.rows ?? [], measures)
  const lines = joinRows(rows, kept?.lines ?? new Map(), measures)
  const placed = placeRows(rows, measures, lines)
  const height = placed.at(-1)?.bottom ?? 0
  const all = part.before + part.items.length + part.after
  const heightOfOne = Math.min(height / Math.max(part.items.length, 1), maxHeight / all)
  const spaceFor = (items: number, least: number) => (items === 0 ? 0 : Math.max(items * heightOfOne, least))
  const below = spaceFor(part.after, view.height)
  const layoutAt = (above: number): ScrollLayout => ({
    ...{ part, measures, rows, lines, placed, above, height, below },
  })

  const anchor = extended && !atStart ? findAnchor(extended, placed, view) : null
  if (anchor !== null) {
    const wanted = anchor.before - anchor.now
    const fits = part.before === 0 ? wanted === 0 : wanted >= view.height
    const above = fits ? wanted : spaceFor(part.before, 2 * view.height)
    return { layout: layoutAt(above), scrollBy: above - wanted, scrollTo: null }
  }
  const estimated = spaceFor(part.before, 2 * view.height)
  if (extended) return { layout: layoutAt(estimated), scrollBy: 0, scrollTo: null }
  if (part.before === 0) return { layout: layoutAt(0), scrollBy: 0, scrollTo: Math.min(view.top, 0) }
  // As far down as the page scrolls.
  if (part.toEnd) return { layout: layoutAt(estimated), scrollBy: 0, scrollTo: estimated + height }
  const above = Math.max(view.top, 2 * view.height)
  return { layout: layoutAt(above), scrollBy: 0, scrollTo: above }
}

const sameShape = (one: Measures, other: Measures) =>
  one.width === other.width &&
  one.rowHeight === other.rowHeight &&
  one.captionHeight === other.captionHeight &&
  one.byMonth === other.byMonth &&
  one.order === other.order

/** The first item on the screen that is in both layouts: its top in the former, and that from the top of the part in the new one. */
function findAnchor(former: ScrollLayout, placed: readonly PlacedRow[], view: View) {
  const tops = new Map(
    placed.flatMap(({ items, itemsTop }) => items.map(({ media }) => [media.id, itemsTop])),
  )
  const isShown = ({ bottom }: PlacedRow) => former.above + bottom > view.top
  const start = former.placed.findIndex(isShown)
  const rows = start < 0 ? former.placed.toReversed() : former.placed.slice(start)
  for (const { items, itemsTop } of rows) {
    const now = items.map(({ media }) => tops.get(media.id)).find((top) => top !== undefined)
    if (now !== undefined) return { before: former.above + itemsTop, now }
  }
  return null
}

/** The rows that are at least partly within `margin` pixels of the view. */
export const rowsNear = ({ placed, above }: ScrollLayout, view: View, margin: number): readonly PlacedRow[] =>
  placed.filter(
    ({ top, bottom }) => above + bottom > view.top - margin && above + top < view.top + view.height + margin,
  )

/** How far the view is above (negative) or below the loaded part; 0 if it shows some of it. Pixels. */
export function distanceFrom({ above, height }: ScrollLayout, view: View): number {
  if (view.top + view.height < above) return view.top + view.height - above
  return Math.max(0, view.top - (above + height))
}

/** The position of the item for which there is space at the top of the view, outside the loaded part. */
export function positionAt({ part, above, height, below }: ScrollLayout, view: View): number {
  if (view.top < above) return Math.floor((part.before * Math.max(view.top, 0)) / above)
  const share = (view.top - above - height) / Math.max(below - view.height, 1)
  return part.before + part.items.length + Math.floor(part.after * Math.min(share, 1))
}

/** How many items at the start and at the end of the loaded part are more than `margin` pixels from the view. */
export function itemsFarFrom({ placed, above }: ScrollLayout, view: View, margin: number): [number, number] {
  const count = (far: (row: PlacedRow) => boolean) =>
    placed
      .filter(far)
      .reduce((sum, { items }: { items: readonly { media: Media }[] }) => sum + items.length, 0)
  return [
    count(({ bottom }) => above + bottom < view.top - margin),
    count(({ top }) => above + top > view.top + view.height + margin),
  ]
}
