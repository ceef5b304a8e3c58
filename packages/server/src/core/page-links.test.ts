import fc from 'fast-check'
import { expect, test } from 'vitest'
import { type PageSettings, pageLinks } from './page-links.ts'

const all: PageSettings = { baseUrl: 'https://media.example', extensions: true, links: 'all' }
const window: PageSettings = { ...all, links: 'window' }

const numbers = (page: number, last: number): string =>
  pageLinks(window, page, last)
    .slice(1, -1)
    .map(({ label }) => label)
    .join(' ')

test.each([
  [1, 14, '1 2 3 4 5 6 7 8 9 10 ... 13 14'],
  [7, 14, '1 2 3 4 5 6 7 8 9 10 ... 13 14'],
  [8, 14, '1 2 ... 5 6 7 8 9 10 11 12 13 14'],
  [14, 14, '1 2 ... 5 6 7 8 9 10 11 12 13 14'],
  [7, 15, '1 2 3 4 5 6 7 8 9 10 ... 14 15'],
  [8, 15, '1 2 ... 5 6 7 8 9 10 11 ... 14 15'],
  [9, 15, '1 2 ... 6 7 8 9 10 11 12 13 14 15'],
  [50, 100, '1 2 ... 47 48 49 50 51 52 53 ... 99 100'],
  [93, 100, '1 2 ... 90 91 92 93 94 95 96 ... 99 100'],
  [94, 100, '1 2 ... 91 92 93 94 95 96 97 98 99 100'],
  [101, 100, '1 2 ... 91 92 93 94 95 96 97 98 99 100'],
  [9000, 100, '1 2 ... 91 92 93 94 95 96 97 98 99 100'],
])('L9 page %i of %i has the window of Laravel', (page, last, shown) => {
  expect(numbers(page, last)).toBe(shown)
})

test('L9 below 14 pages nothing is elided', () => {
  const small = fc.tuple(fc.integer({ min: 1, max: 30 }), fc.integer({ min: 1, max: 13 }))
  fc.assert(
    fc.property(small, ([page, last]) => {
      expect(pageLinks(window, page, last)).toEqual(pageLinks(all, page, last))
    }),
  )
})

test('L9 a window has the ends, the neighbours and one entry for each gap, equal to those of the full list', () => {
  const large = fc.tuple(fc.integer({ min: 1, max: 400 }), fc.integer({ min: 14, max: 300 }))
  fc.assert(
    fc.property(large, ([page, last]) => {
      const links = pageLinks(window, page, last)
      const whole = pageLinks(all, page, last)
      expect(links[0]).toEqual(whole[0])
      expect(links.at(-1)).toEqual(whole.at(-1))
      const labels = links.slice(1, -1).map(({ label }) => label)
      for (const number of [1, 2, last - 1, last]) expect(labels).toContain(`${number}`)
      for (let near = Math.max(1, page - 3); near <= Math.min(last, page + 3); near++) {
        expect(labels).toContain(`${near}`)
      }
      let before = 0
      for (const link of links.slice(1, -1)) {
        if (link.label === '...') {
          expect(link).toEqual({ url: null, label: '...', active: false })
          expect(labels).not.toContain(`${before + 1}`)
          before = Number.NaN
        } else {
          const number = Number(link.label)
          expect(link).toEqual(whole[number])
          if (!Number.isNaN(before)) expect(number).toBe(before + 1)
          before = number
        }
      }
    }),
  )
})

test('L9 the size of a window does not depend on the number of pages', () => {
  expect(pageLinks(window, 2 ** 40, 2 ** 50)).toHaveLength(15)
})
