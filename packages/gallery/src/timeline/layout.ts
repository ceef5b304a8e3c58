import type { Media } from '@mediabucket/client'
import type { ListOrder } from '@mediabucket/client/rules'
import { firstLetterOf } from './name-order.ts'
import { isByName, isByTaken, timeOf } from './shown-list.ts'

/** Items beside one another, all of one day or month, or by name of one first letter. */
export interface Row {
  readonly items: readonly Media[]
  readonly day: string
}

export interface Shape {
  /** Pixels. */
  readonly width: number
  /** The height of a row of pictures whose widths have the right sum. Pixels; 0 for a list with one item in each row. */
  readonly rowHeight: number
  readonly gap: number
  /** Whether items are grouped by month instead of by day. */
  readonly byMonth?: boolean
  /** The order of the list, which has the time or the name by which they are grouped. */
  readonly order?: ListOrder
}

/** Wider and narrower pictures fill a box with these ratios of width and height, and are cut off evenly. */
const ratios = { least: 0.45, most: 4 }

/** The ratio of width and height in which an item is shown; 1 if it is unknown. */
export function ratioOf({ width, height }: Media): number {
  if (width === null || height === null || width === 0 || height === 0) return 1
  return Math.min(Math.max(width / height, ratios.least), ratios.most)
}

const ratioSum = (items: readonly Media[]) => items.reduce((sum, item) => sum + ratioOf(item), 0)

/** The height at which the pictures of a row fill the width. Pixels. */
export const fillingHeight = (items: readonly Media[], { width, gap }: Shape): number =>
  (width - gap * (items.length - 1)) / ratioSum(items)

const isFull = (items: readonly Media[], shape: Shape) =>
  shape.rowHeight === 0 || fillingHeight(items, shape) <= shape.rowHeight

/**
 * The day, or the month, of an item: `2026-05-01` or `2026-05`; empty if its time cannot be parsed. Of an upload in the browser's time zone. By the
 * time of cameras as their clocks showed it, and of other items in UTC, as the list is ordered. In a list by name, the first letter.
 */
function dayOf(media: Media, { byMonth = false, order = 'newest' }: Shape): string {
  if (isByName(order)) return firstLetterOf(media.filename)
  const time = timeOf(order, media)
  if (isByTaken(order)) return time.slice(0, byMonth ? 7 : 10)
  const date = new Date(time)
  if (Number.isNaN(date.getTime())) return ''
  const two = (number: number) => `${number}`.padStart(2, '0')
  const month = `${date.getFullYear()}-${two(date.getMonth() + 1)}`
  return byMonth ? month : `${month}-${two(date.getDate())}`
}

/** Fills rows from the first item on; the last row of each day may not fill the width. */
function fill(items: readonly Media[], shape: Shape): Row[] {
  const rows: { items: Media[]; day: string }[] = []
  for (const item of items) {
    const row = rows.at(-1)
    const day = dayOf(item, shape)
    if (row && row.day === day && !isFull(row.items, shape)) row.items.push(item)
    else rows.push({ items: [item], day })
  }
  return rows
}

/** Fills rows from the last item on; the first row of each day may not fill the width. */
const fillBackward = (items: readonly Media[], shape: Shape): Row[] =>
  fill(items.toReversed(), shape)
    .map(({ items, day }) => ({ items: items.toReversed(), day }))
    .toReversed()

/**
 * Arranges items in rows. Items stay in the rows that they were in, so that they do not move when other items are added or removed. Only
 * rows that did not fill the width and are next to new items receive more items.
 */
export function arrange(items: readonly Media[], former: readonly Row[], shape: Shape): Row[] {
  const rowOf = new Map(former.flatMap((row) => row.items.map(({ id }) => [id, row])))
  const kept: { row: Row | undefined; items: Media[]; day: string }[] = []
  for (const item of items) {
    const row = rowOf.get(item.id)
    const last = kept.at(-1)
    const day = dayOf(item, shape)
    // New items form one run of several days.
    if (last && last.row === row && (row === undefined || last.day === day)) last.items.push(item)
    else kept.push({ row, items: [item], day })
  }
  const rows: Row[] = []
  for (const [index, { row, items, day }] of kept.entries()) {
    const next = kept[index + 1]
    if (row !== undefined) rows.push({ items, day })
    else if (index === 0 && next) {
      const [edge] = items.slice(-1)
      const open = !isFull(next.items, shape) && edge !== undefined && next.day === dayOf(edge, shape)
      if (open) kept[index + 1] = { ...next, items: [] }
      rows.push(...fillBackward(open ? [...items, ...next.items] : items, shape))
    } else {
      const last = rows.at(-1)
      const open = last !== undefined && !isFull(last.items, shape) && last.day === day
      if (open) rows.pop()
      rows.push(...fill(open ? [...last.items, ...items] : items, shape))
    }
  }
  return rows.filter(({ items }) => items.length > 0)
}

/** Where an item is shown, in pixels from the top left corner of the loaded part. */
export interface PlacedItem {
  readonly media: Media
  readonly left: number
  readonly width: number
}

export interface PlacedRow {
  readonly items: readonly PlacedItem[]
  readonly day: string
  /** Whether it is the first loaded row of its day; then its top is that of a heading. */
  readonly headed: boolean
  /** Where the row begins, in pixels from the left. Rows of small groups are beside one another, with the same top. */
  readonly left: number
  /** Of the row and its heading. Pixels. */
  readonly width: number
  /** Pixels from the top of the loaded part, of the heading if it has one. */
  readonly top: number
  /** Pixels from the top of the loaded part, of the items. */
  readonly itemsTop: number
  /** Of the pictures. Pixels. */
  readonly pictureHeight: number
  readonly bottom: number
}

export interface Measures extends Shape {
  /** Of a heading above a day. Pixels. */
  readonly headingHeight: number
  /** The space that a heading needs. Pixels. */
  readonly headingWidth: number
  /** Between groups that are beside one another. Pixels. */
  readonly groupGap: number
  /** Of the text below each picture, or of a row of the list. Pixels. */
  readonly captionHeight: number
}

/** A row with few pictures is enlarged to the width up to this multiple of the usual height. */
const mostEnlarged = 1.25

/** Whether a row is beside the one before it, by the first item of the row. */
export type Lines = ReadonlyMap<string, boolean>

/** The width of a row that is all of its group and far from full, with its heading; null for another row. */
function smallWidth(rows: readonly Row[], index: number, measures: Measures): number | null {
  const { rowHeight, gap, headingWidth } = measures
  const row = rows[index]
  if (row === undefined || rowHeight === 0) return null
  if (rows[index - 1]?.day === row.day || rows[index + 1]?.day === row.day) return null
  if (fillingHeight(row.items, measures) <= rowHeight * mostEnlarged) return null
  return Math.max(ratioSum(row.items) * rowHeight + gap * (row.items.length - 1), headingWidth)
}

/**
 * Puts small groups beside one another. Those that were placed before stay in their lines, so that they do not move when others are loaded
 * before them.
 */
export function joinRows(rows: readonly Row[], former: Lines, measures: Measures): Lines {
  const lines = new Map<string, boolean>()
  /** The width of the line so far; null if it takes no other group. */
  let used: number | null = null
  for (const [index, { items }] of rows.entries()) {
    const first = items[0]?.id ?? ''
    const width = smallWidth(rows, index, measures)
    const joined: number | null = used === null || width === null ? null : used + measures.groupGap + width
    const joins: boolean = joined !== null && joined <= measures.width && former.get(first) !== false
    used = joins ? joined : width
    lines.set(first, joins)
  }
  return lines
}

/** Calculates where rows are shown. */
export function placeRows(rows: readonly Row[], measures: Measures, lines: Lines): PlacedRow[] {
  const { rowHeight, gap, headingHeight, captionHeight } = measures
  const placed: PlacedRow[] = []
  for (const [index, { items, day }] of rows.entries()) {
    const last = placed.at(-1)
    const small = smallWidth(rows, index, measures)
    const beside = last !== undefined && small !== null && lines.get(items[0]?.id ?? '') === true
    const top = beside ? last.top : (last?.bottom ?? 0)
    const start = beside ? last.left + last.width + measures.groupGap : 0
    const headed = rows[index - 1]?.day !== day
    const itemsTop = top + (headed ? headingHeight : 0)
    const pictureHeight = rowHeight === 0 || small !== null ? rowHeight : heightOf(items, measures)
    const bottom = itemsTop + pictureHeight + captionHeight + gap
    const width = small ?? measures.width
    placed.push({
      items: placeItems(items, start, pictureHeight, measures),
      ...{ day, headed, left: start, width, top, itemsTop, pictureHeight, bottom },
    })
  }
  return placed
}

/** The height of the pictures of a row. Pixels. */
function heightOf(items: readonly Media[], measures: Measures): number {
  const filling = fillingHeight(items, measures)
  return filling <= measures.rowHeight * mostEnlarged ? filling : measures.rowHeight
}

function placeItems(
  items: readonly Media[],
  start: number,
  pictureHeight: number,
  measures: Measures,
): PlacedItem[] {
  let left = start
  return items.map((media) => {
    const width = measures.rowHeight === 0 ? measures.width : pictureHeight * ratioOf(media)
    const item = { media, left, width }
    left += width + measures.gap
    return item
  })
}

/** The sizes of the grid, or of the list, at a width. Pixels. */
export function measuresFor(width: number, list: boolean, byMonth: boolean, order: ListOrder): Measures {
  // “Wednesday, September 30, 2026” in the language with the longest text, and “septiembre de 2026”.
  const headingWidth = isByName(order) ? 72 : byMonth ? 160 : 290
  const headings = { headingWidth, groupGap: 0 }
  if (list)
    return { ...headings, width, byMonth, order, rowHeight: 0, gap: 0, headingHeight: 48, captionHeight: 56 }
  const small = width < 560
  return {
    headingWidth,
    groupGap: small ? 16 : 24,
    width,
    byMonth,
    order,
    rowHeight: small ? 120 : width < 1000 ? 170 : width < 1800 ? 210 : 240,
    gap: small ? 4 : 12,
    headingHeight: small ? 44 : 52,
    // Names would be shortened to a few letters.
    captionHeight: small ? 0 : 30,
  }
}
