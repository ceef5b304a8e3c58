import fc from 'fast-check'
import { expect, test } from 'vitest'
import { pageWindow } from '../src/listing/page-window.ts'

test.each([
  [1, 1, '1'],
  [3, 9, '1 2 3 4 5 6 7 8 9'],
  [1, 10, '1 2 3 4 5 6 7 … 10'],
  [5, 10, '1 2 3 4 5 6 7 … 10'],
  [6, 10, '1 … 4 5 6 7 8 9 10'],
  [6, 11, '1 … 4 5 6 7 8 … 11'],
  [50_000, 100_000, '1 … 49998 49999 50000 50001 50002 … 100000'],
  [99_999, 100_000, '1 … 99994 99995 99996 99997 99998 99999 100000'],
  [7, 3, '1 2 3'],
])('on page %i of %i the pager shows %s', (current, last, shown) => {
  expect(
    pageWindow(current, last)
      .map((page) => page ?? '…')
      .join(' '),
  ).toBe(shown)
})

test('for every page, at most nine ascending entries include the first, the last and the current page', () => {
  const places = fc
    .integer({ min: 1, max: 2 ** 40 })
    .chain((last) => fc.record({ last: fc.constant(last), current: fc.integer({ min: 1, max: last }) }))
  fc.assert(
    fc.property(places, ({ current, last }) => {
      const shown = pageWindow(current, last)
      const pages = shown.filter((page) => page !== null)
      expect(shown.length).toBeLessThanOrEqual(9)
      expect(pages).toEqual([...new Set(pages)].sort((a, b) => a - b))
      expect([pages[0], pages.at(-1)]).toEqual([1, last])
      expect(pages).toContain(current)
    }),
  )
})
