import { expect, test } from 'vitest'
import { formatHash, noChoice, parseHash, type Route } from '../src/router.ts'

const oldest = { ...noChoice, order: 'oldest' } as const

test.each([
  ['', undefined, null],
  ['#', undefined, null],
  ['#page=3', 3, null],
  ['#page=03', 3, null],
  ['#page=3&item=k92v8d0q3h5wkc9r1n6x7zjy4tam', 3, 'k92v8d0q3h5wkc9r1n6x7zjy4tam'],
  ['#item=2v8d', undefined, '2v8d'],
  ['#page=', 1, null],
  ['#page=0', 1, null],
  ['#page=-3', 1, null],
  ['#page=two&item=2v8d', 1, '2v8d'],
  ['#page=1e3', 1, null],
  ['#page=9007199254740993', 1, null],
  ['#page=2&item=../../etc', 2, null],
  ['#page=2&item=<img src=x>', 2, null],
  ['#media', undefined, null],
])('G18 the hash %j leads to page %j and item %j', (hash, page, item) => {
  const route = parseHash(hash)
  expect([route.page, route.item]).toEqual([page, item])
  expect(route.list).toEqual(page === undefined ? noChoice : oldest)
})

test('G18 a page is shown as the list in the order of uploads, and its number does not stay in the address', () => {
  expect(formatHash(parseHash('#page=3'))).toBe('#order=oldest')
  expect(formatHash(parseHash('#page=3&item=2v8d'))).toBe('#order=oldest&item=2v8d')
})

test.each([
  ['#kind=video&time=week&name=lake+view', { ...noChoice, kind: 'video', time: 'week', name: 'lake view' }],
  ['#order=taken-desc', { ...noChoice, order: 'taken-desc' }],
  ['#order=oldest&view=list', { ...noChoice, order: 'oldest', view: 'list' }],
  ['#kind=toString&time=&order=up&view=pages', noChoice],
  ['#label=album%3D4+2%3D', { ...noChoice, labels: ['album=4 2='] }],
  ['#label=a%3D1&label=b%3D2&label=a%3D3', { ...noChoice, labels: ['a=3', 'b=2'] }],
  [
    `#${[...'abcdefghi'].map((key) => `label=${key}%3D`).join('&')}`,
    { ...noChoice, labels: [...'abcdefgh'].map((key) => `${key}=`) },
  ],
  ['#label=Album%3D42', noChoice],
  [`#name=${'a+'.repeat(12)}`, { ...noChoice, name: 'a a a a a a a a' }],
])('G30 the hash %j shows the list %j', (hash, list) => {
  expect(parseHash(hash).list).toEqual(list)
})

test('#trash is the trash, without an item', () => {
  expect(parseHash('#trash')).toEqual({ item: null, section: 'trash' })
  expect(formatHash(parseHash('#trash'))).toBe('#trash')
})

test('#tokens is the list of tokens', () => {
  expect(parseHash('#tokens')).toEqual({ item: null, section: 'tokens' })
  expect(formatHash(parseHash('#tokens'))).toBe('#tokens')
})

test('a formatted route is parsed to the same route', () => {
  const routes: readonly Route[] = [
    { item: null, list: noChoice },
    { item: '2v8d', list: noChoice },
    { item: '2v8d', list: { ...noChoice, kind: 'video', name: 'a & b=ü#', order: 'oldest' } },
    { item: null, list: { ...noChoice, labels: ['a=1&2', 'b='] } },
    { item: null, list: { ...noChoice, time: 'week', view: 'list' } },
  ]
  for (const route of routes) expect(parseHash(formatHash(route))).toEqual(route)
})
