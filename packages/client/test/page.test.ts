import { expect, test } from 'vitest'
import { ShapeError } from '../src/index.ts'
import { nextPageNumber, readPage } from '../src/page.ts'
import { pageOf } from './page-of.ts'

const link = { url: null, label: '1', active: false }
const withLinks = (...links: unknown[]) => ({ ...pageOf(1, 2), links })
const without = (name: string) =>
  Object.fromEntries(Object.entries(pageOf(1, 2)).filter(([key]) => key !== name))

test.each<[path: string, body: unknown]>([
  ['', null],
  ['', []],
  ['', 'a page'],
  ['current_page', {}],
  ['current_page', { data: {} }],
  ['current_page', { ...pageOf(1, 2), current_page: 0 }],
  ['current_page', { ...pageOf(1, 2), current_page: '1' }],
  ['data', { ...pageOf(1, 2), data: { '3': 'https://media.example.org/media/x' } }],
  ['data[1]', { ...pageOf(1, 2), data: ['https://media.example.org/media/x', 7] }],
  ['first_page_url', { ...pageOf(1, 2), first_page_url: 1 }],
  ['from', { ...pageOf(1, 2), from: '1' }],
  ['last_page', { data: { ...pageOf(1, 2), last_page: 1.5 } }],
  ['links', { ...pageOf(1, 2), links: null }],
  ['links[3].url', withLinks(link, link, link, { ...link, url: 7 }, link)],
  ['links[0].label', withLinks({ ...link, label: 1 })],
  ['links[1].active', withLinks(link, { url: null, label: '1' })],
  ['links[0].page', withLinks({ ...link, page: '1' })],
  ['links[0]', withLinks('1')],
  ['next_page_url', { ...pageOf(1, 2), next_page_url: 2 }],
  ['total', { ...pageOf(1, 2), total: -1 }],
  ['total', { ...pageOf(1, 2), total: 2 ** 53 }],
  ...Object.keys(pageOf(1, 2)).map((name): [string, unknown] => [name, without(name)]),
])('the error for an invalid response names the field: %s', (path, body) => {
  const error = thrownBy(() => readPage(body))
  expect(error).toBeInstanceOf(ShapeError)
  expect(error).toMatchObject({ name: 'ShapeError', path })
  expect(String(error)).toContain(`The response is not a page: ${path || 'the response'} must`)
})

function thrownBy(action: () => unknown): unknown {
  try {
    return action()
  } catch (error) {
    return error
  }
}

test('the message contains the expected and the received value', () => {
  expect(() => readPage(withLinks(link, { ...link, url: 7 }))).toThrow(
    'links[1].url must be a string or null, and is the number 7',
  )
  expect(() => readPage(without('total'))).toThrow('total must be a whole number, and is missing')
})

const listing = 'https://inside.example/box/v1/media/'

test.each([
  ['https://elsewhere.example/api/media?page=2', 2],
  ['/api/media?page=17', 17],
  ['?page=3&per_page=10', 3],
  [null, null],
])('the next page of %s is %s', (next_page_url, expected) => {
  expect(nextPageNumber(pageOf(1, 2, { next_page_url }), 1, listing)).toBe(expected)
})

test.each([
  '?page=4',
  '?page=5',
  '?page=x',
  '?page=-6',
  '?page=06',
  '?page=6.5',
  '?page=9007199254740993',
  '',
  'http://[',
])('a next page that is invalid or not a later page is refused: %s', (next_page_url) => {
  const error = thrownBy(() => nextPageNumber(pageOf(5, 9, { next_page_url }), 5, listing))
  expect(error).toMatchObject({ name: 'ShapeError', path: 'next_page_url' })
})
