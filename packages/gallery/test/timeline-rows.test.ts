import type { Media } from '@mediabucket/client'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { arrange, fillingHeight, placeRows, ratioOf } from '../src/timeline/layout.ts'

const shape = { width: 1000, rowHeight: 200, gap: 10 }
const measures = { ...shape, headingHeight: 50, captionHeight: 30 }

/** Items of several days, newest first. */
function itemsOf(sizes: readonly (readonly [number, number])[], perDay = 12): Media[] {
  return sizes.map(([width, height], index) => ({
    id: `item-${index}`,
    url: '',
    filename: null,
    content_type: 'image/jpeg',
    size: 1,
    sha256: '00',
    created_at: new Date(Date.UTC(2026, 4, 30 - Math.floor(index / perDay), 12)).toISOString(),
    width,
    height,
  }))
}
const sizes = (least: number) =>
  fc.array(fc.tuple(fc.integer({ min: 1, max: 4000 }), fc.integer({ min: 1, max: 4000 })), {
    minLength: least,
    maxLength: 60,
  })
const idsOf = (rows: ReturnType<typeof arrange>) => rows.map(({ items }) => items.map(({ id }) => id))

test('rows have every item once, in order, and only items of one day', () => {
  fc.assert(
    fc.property(sizes(0), fc.nat(), fc.nat(), (list, from, to) => {
      const items = itemsOf(list)
      const part = items.slice(from % (items.length + 1)).slice(0, to % 40)
      for (const rows of [
        arrange(items, [], shape),
        arrange(items, arrange(part, [], shape), shape),
        arrange(
          items,
          arrange(
            items.filter((_, index) => index % 3 > 0),
            [],
            shape,
          ),
          shape,
        ),
      ]) {
        expect(rows.flatMap((row) => row.items)).toEqual(items)
        for (const { items, day } of rows)
          expect(items.every(({ created_at }) => created_at.startsWith(day))).toBe(true)
      }
    }),
  )
})

test('G18 by the time of cameras, rows have the days of their clocks, and of other files the day in UTC', () => {
  const taken = ['2018-07-19T23:30:00.000+02:00', '2018-07-20T00:10:00.000', '2024-01-01T00:00:00.000Z', null]
  const items = itemsOf(taken.map(() => [4, 3])).map((item, index) => ({
    ...item,
    taken_at: taken[index] ?? null,
    created_at: '2026-05-01T23:59:00.000Z',
  }))
  const daysOf = (byMonth: boolean) =>
    arrange(items, [], { ...shape, byMonth, order: 'taken' }).map(({ day }) => day)
  expect(daysOf(false)).toEqual(['2018-07-19', '2018-07-20', '2024-01-01', '2026-05-01'])
  expect(daysOf(true)).toEqual(['2018-07', '2024-01', '2026-05'])
})

test('full rows stay as they are when items are added before and after them, or removed elsewhere', () => {
  fc.assert(
    fc.property(sizes(20), (list) => {
      const items = itemsOf(list)
      const middle = arrange(items.slice(6, -6), [], shape)
      const full = middle.slice(1, -1).filter((row) => fillingHeight(row.items, shape) <= shape.rowHeight)
      const after = idsOf(arrange(items, middle, shape))
      for (const row of idsOf(full)) expect(after).toContainEqual(row)
      const fewer = idsOf(arrange(items.slice(8, -6), middle, shape))
      for (const row of idsOf(full.slice(3))) expect(fewer).toContainEqual(row)
    }),
  )
})

test('items fill the width with their own ratios and do not overlap; the last row of a day is not enlarged much', () => {
  fc.assert(
    fc.property(sizes(1), (list) => {
      const placed = placeRows(arrange(itemsOf(list), [], shape), measures)
      let bottom = 0
      for (const { items, top, itemsTop, pictureHeight, headed, ...row } of placed) {
        expect(top).toBe(bottom)
        expect(itemsTop).toBe(top + (headed ? measures.headingHeight : 0))
        bottom = row.bottom
        expect(bottom).toBeGreaterThan(itemsTop + pictureHeight)
        expect(pictureHeight).toBeLessThanOrEqual(shape.rowHeight * 1.25)
        let right = -shape.gap
        for (const { media, left, width } of items) {
          expect(left).toBeCloseTo(right + shape.gap, 6)
          expect(width / pictureHeight).toBeCloseTo(ratioOf(media), 6)
          right = left + width
        }
        expect(right).toBeLessThan(shape.width + 0.001)
      }
    }),
  )
})
