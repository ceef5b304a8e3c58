import type { Media } from '@mediabucket/client'
import { fillingHeight, type Row, ratioOf, type Shape } from './rows.ts'

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
  /** Of the text below each picture, or of a row of the list. Pixels. */
  readonly captionHeight: number
}

/** A row with few pictures is enlarged to the width up to this multiple of the usual height. */
const mostEnlarged = 1.25

/** Calculates where rows are shown. */
export function placeRows(rows: readonly Row[], measures: Measures): PlacedRow[] {
  const { width, rowHeight, gap, headingHeight, captionHeight } = measures
  let top = 0
  return rows.map(({ items, day }, index) => {
    const headed = rows[index - 1]?.day !== day
    const itemsTop = top + (headed ? headingHeight : 0)
    const filling = fillingHeight(items, measures)
    const pictureHeight = rowHeight === 0 ? 0 : filling <= rowHeight * mostEnlarged ? filling : rowHeight
    let left = 0
    const placed = items.map((media) => {
      const item = { media, left, width: rowHeight === 0 ? width : pictureHeight * ratioOf(media) }
      left += item.width + gap
      return item
    })
    const bottom = itemsTop + pictureHeight + captionHeight + gap
    const row = { items: placed, day, headed, top, itemsTop, pictureHeight, bottom }
    top = bottom
    return row
  })
}
