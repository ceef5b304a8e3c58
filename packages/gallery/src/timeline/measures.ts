import type { Measures } from './layout.ts'

/** The sizes of the grid, or of the list, at a width. Pixels. */
export function measuresFor(width: number, list: boolean, byMonth: boolean): Measures {
  if (list) return { width, byMonth, rowHeight: 0, gap: 0, headingHeight: 48, captionHeight: 56 }
  const small = width < 560
  return {
    width,
    byMonth,
    rowHeight: small ? 120 : width < 1000 ? 170 : width < 1800 ? 210 : 240,
    gap: small ? 4 : 12,
    headingHeight: small ? 44 : 52,
    // Names would be shortened to a few letters.
    captionHeight: small ? 0 : 30,
  }
}
