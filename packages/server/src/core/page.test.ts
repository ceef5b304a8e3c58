import fc from 'fast-check'
import { expect, test } from 'vitest'
import { Fault } from './faults.ts'
import { mediaUrl } from './item-urls.ts'
import { type PageSettings, pageLinks, pageObject, pageSize, parsePageNumber } from './page.ts'

const urls: PageSettings = { baseUrl: 'https://media.example', extensions: true, links: 'all' }
const at = (page: number): string => `https://media.example/api/media?page=${page}`

const itemsOf = (page: number, total: number): { id: string; extension: string | null }[] =>
  Array.from({ length: Math.max(0, Math.min(10, total - (page - 1) * 10)) }, (_, index) => ({
    id: `m${index}`,
    extension: index % 2 === 0 ? 'jpg' : null,
  }))

const pageOf = (page: number, total: number, settings: PageSettings = urls): ReturnType<typeof pageObject> =>
  pageObject(settings, page, total, itemsOf(page, total))

/** Any total up to 60 pages, and any page within it or past its end. */
const listing = fc.tuple(fc.integer({ min: 1, max: 70 }), fc.integer({ min: 0, max: 600 }))
const every = (check: (page: number, total: number, last: number) => void): void =>
  fc.assert(
    fc.property(listing, ([page, total]) => {
      check(page, total, total === 0 ? 1 : Math.ceil(total / 10))
    }),
    { numRuns: 500 },
  )

test('L2 a page is byte for byte equal to the documented one', () => {
  const items = [
    { id: '0f3k', extension: 'jpg' },
    { id: '7xw2', extension: null },
  ]
  expect(JSON.stringify(pageObject(urls, 2, 12, items), null, 2)).toBe(`{
  "current_page": 2,
  "data": [
    "https://media.example/media/0f3k.jpg",
    "https://media.example/media/7xw2"
  ],
  "first_page_url": "https://media.example/api/media?page=1",
  "from": 11,
  "last_page": 2,
  "last_page_url": "https://media.example/api/media?page=2",
  "links": [
    {
      "url": "https://media.example/api/media?page=1",
      "label": "&laquo; Previous",
      "active": false
    },
    {
      "url": "https://media.example/api/media?page=1",
      "label": "1",
      "active": false
    },
    {
      "url": "https://media.example/api/media?page=2",
      "label": "2",
      "active": true
    },
    {
      "url": null,
      "label": "Next &raquo;",
      "active": false
    }
  ],
  "next_page_url": null,
  "path": "https://media.example/api/media",
  "per_page": 10,
  "prev_page_url": "https://media.example/api/media?page=1",
  "to": 12,
  "total": 12
}`)
})

test('L3 per_page is always 10', () => {
  expect(pageSize).toBe(10)
  every((page, total) => expect(pageOf(page, total).per_page).toBe(10))
})

test('L4 last_page is the number of pages that total needs, and 1 for an empty bucket', () => {
  every((page, total, last) => expect(pageOf(page, total)).toMatchObject({ total, last_page: last }))
  expect(pageOf(1, 0).last_page).toBe(1)
  expect(pageOf(1, 10).last_page).toBe(1)
  expect(pageOf(1, 11).last_page).toBe(2)
})

test('L5 from and to are the 1-based positions in the whole listing, null on an empty page', () => {
  every((page, total) => {
    const { from, to, data } = pageOf(page, total)
    if (data.length === 0) return expect([from, to]).toEqual([null, null])
    expect([from, to]).toEqual([page * 10 - 9, Math.min(page * 10, total)])
  })
})

test('L6 the URLs of first, last, next and previous page, and the path', () => {
  every((page, total, last) =>
    expect(pageOf(page, total)).toMatchObject({
      first_page_url: at(1),
      last_page_url: at(last),
      next_page_url: page < last ? at(page + 1) : null,
      prev_page_url: page === 1 ? null : at(page - 1),
      path: 'https://media.example/api/media',
    }),
  )
})

test('L7 links hold the previous entry, one entry per page number, and the next entry', () => {
  every((page, total, last) => {
    const { links, prev_page_url, next_page_url } = pageOf(page, total)
    expect(links).toHaveLength(last + 2)
    expect(links[0]).toEqual({ url: prev_page_url, label: '&laquo; Previous', active: false })
    expect(links.at(-1)).toEqual({ url: next_page_url, label: 'Next &raquo;', active: false })
    for (const [index, link] of links.slice(1, -1).entries()) {
      expect(link).toMatchObject({ url: at(index + 1), label: `${index + 1}` })
    }
  })
})

test('L7 links have one entry per page at any size', () => {
  const { links } = pageObject(urls, 50_000, 1_000_000, [])
  expect(links).toHaveLength(100_002)
  expect(links[50_000]).toEqual({ url: at(50_000), label: '50000', active: true })
})

test('L8 active is true on the number link of the current page and on no other', () => {
  every((page, total, last) => {
    const labels = pageOf(page, total).links.flatMap(({ label, active }) => (active ? [label] : []))
    expect(labels).toEqual(page <= last ? [`${page}`] : [])
  })
})

test('L12 a page past the last one is empty and links to the previous page', () => {
  const page = Number.MAX_SAFE_INTEGER
  const past = pageOf(page, 25)
  expect(past).toMatchObject({
    current_page: page,
    data: [],
    from: null,
    to: null,
    last_page: 3,
    next_page_url: null,
    prev_page_url: at(page - 1),
    total: 25,
  })
  expect(past.links.filter(({ active }) => active)).toEqual([])
  expect(past.links.map(({ label }) => label)).toEqual(['&laquo; Previous', '1', '2', '3', 'Next &raquo;'])
})

test('L14 a media URL has the extension of a known type, unless the setting disables it', () => {
  expect(mediaUrl(urls, 'abc', 'jpg')).toBe('https://media.example/media/abc.jpg')
  expect(mediaUrl(urls, 'abc', null)).toBe('https://media.example/media/abc')
  expect(mediaUrl({ ...urls, extensions: false }, 'abc', 'jpg')).toBe('https://media.example/media/abc')
  expect(pageOf(1, 2, { ...urls, extensions: false }).data).toEqual([
    'https://media.example/media/m0',
    'https://media.example/media/m1',
  ])
})

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

const refusal = (value: string | readonly string[]): unknown => {
  try {
    return parsePageNumber(value)
  } catch (error) {
    return error
  }
}

test('L11 without the parameter the page is 1', () => {
  expect(parsePageNumber(undefined)).toBe(1)
})

test('L11 every integer from 1 to 2^53 - 1 is a page number', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: Number.MAX_SAFE_INTEGER }), (page) => {
      expect(parsePageNumber(`${page}`)).toBe(page)
    }),
  )
  expect(parsePageNumber('9007199254740991')).toBe(9007199254740991)
  expect(parsePageNumber(['7'])).toBe(7)
})

test.each([
  ['zero', '0'],
  ['a sign', '-1'],
  ['a plus', '+1'],
  ['a leading zero', '02'],
  ['a fraction', '1.5'],
  ['an exponent', '1e3'],
  ['a space', ' 1'],
  ['a line end', '1\n'],
  ['nothing', ''],
  ['a word', 'abc'],
  ['hexadecimal', '0x1'],
  ['foreign digits', '١'],
  ['2^53', '9007199254740992'],
  ['what rounds to 2^53', '9007199254740993'],
  ['400 digits', '9'.repeat(400)],
  ['a repeated parameter', ['1', '2']],
  ['a parameter repeated alike', ['1', '1']],
  ['an empty list', []],
])('L11 %s is refused, with the parameter and the values that it accepts', (_, value) => {
  const fault = refusal(value)
  expect(fault).toBeInstanceOf(Fault)
  expect(fault).toMatchObject({ code: 'page-malformed', parameters: [{ parameter: 'page' }] })
  expect(fault).toHaveProperty('message', expect.stringContaining('9007199254740991'))
  expect(fault).toHaveProperty('parameters.0.detail', expect.stringContaining('9007199254740991'))
})

test('L11 a text is a page number only if it is the canonical form of the number', () => {
  fc.assert(
    fc.property(fc.oneof(fc.string(), fc.stringMatching(/^[-+ 0-9.eE]{1,20}$/)), (text) => {
      const number = Number(text)
      const wellFormed = number >= 1 && Number.isSafeInteger(number) && `${number}` === text
      expect(typeof refusal(text) === 'number').toBe(wellFormed)
    }),
  )
})
