import type { Media } from '@mediabucket/client'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import {
  arrange,
  fillingHeight,
  joinRows,
  type Lines,
  placeRows,
  type Row,
  ratioOf,
} from '../src/timeline/layout.ts'

const shape = { width: 1000, rowHeight: 200, gap: 10 }
const measures = { ...shape, headingHeight: 50, headingWidth: 150, groupGap: 20, captionHeight: 30 }
const place = (rows: readonly Row[], former: Lines = new Map()) =>
  placeRows(rows, measures, joinRows(rows, former, measures))

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
    fc.property(sizes(1), fc.integer({ min: 1, max: 12 }), (list, perDay) => {
      const placed = place(arrange(itemsOf(list, perDay), [], shape))
      let last = { top: 0, bottom: 0, right: 0 }
      for (const { items, left, width, top, itemsTop, pictureHeight, headed, bottom } of placed) {
        if (top === last.top && left > 0) expect(left).toBeCloseTo(last.right + measures.groupGap, 6)
        else expect([top, left]).toEqual([last.bottom, 0])
        expect(itemsTop).toBe(top + (headed ? measures.headingHeight : 0))
        expect(bottom).toBeGreaterThan(itemsTop + pictureHeight)
        expect(pictureHeight).toBeLessThanOrEqual(shape.rowHeight * 1.25)
        let right = left - shape.gap
        for (const { media, left, width } of items) {
          expect(left).toBeCloseTo(right + shape.gap, 6)
          expect(width / pictureHeight).toBeCloseTo(ratioOf(media), 6)
          right = left + width
        }
        expect(right).toBeLessThan(left + width + 0.001)
        expect(left + width).toBeLessThan(shape.width + 0.001)
        last = { top, bottom, right: left + width }
      }
    }),
  )
})

test('G18 small groups share a line, and stay in it when others are loaded before them', () => {
  const square = (count: number): [number, number][] => Array.from({ length: count }, () => [1, 1])
  const items = itemsOf(square(9), 1)
  const rows = arrange(items, [], shape)
  // Four groups of 200 pixels, with 20 between them, fit into 1000.
  const line = (placed: ReturnType<typeof place>) => placed.map(({ left, top }) => [left, top])
  const expected = [0, 220, 440, 660].map((left) => [left, 0])
  expect(line(place(rows)).slice(0, 5)).toEqual([...expected, [0, 290]])
  // The first two are loaded later.
  const part = rows.slice(2)
  const former = joinRows(part, new Map(), measures)
  const tops = (placed: ReturnType<typeof place>) => placed.slice(-7).map(({ left, top }) => [left, top])
  const before = tops(place(part, former))
  const after = tops(place(arrange(items, part, shape), former))
  expect(after).toEqual(before.map(([left, top]) => [left, (top ?? 0) + 290]))
})

test('G18 a group that is nearly as wide as the list, or has several rows, has its lines alone', () => {
  const wide = itemsOf(
    [
      [4, 1],
      [1, 1],
      [4, 1],
      [4, 1],
      [4, 1],
    ],
    2,
  )
  expect(place(arrange(wide, [], shape)).map(({ left }) => left)).toEqual([0, 0, 0])
})
