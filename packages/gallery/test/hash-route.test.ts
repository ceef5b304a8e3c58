import { expect, test } from 'vitest'
import { formatHash, hasInvalidPage, noChoice, pageNumberOf, parseHash, type Route } from '../src/router.ts'

test.each([
  ['', null, null],
  ['#', null, null],
  ['#page=3', 3, null],
  ['#page=3&item=k92v8d0q3h5wkc9r1n6x7zjy4tam', 3, 'k92v8d0q3h5wkc9r1n6x7zjy4tam'],
  ['#item=2v8d', null, '2v8d'],
  ['#page=0', 1, null],
  ['#page=-3', 1, null],
  ['#page=1e3', 1, null],
  ['#page=9007199254740993', 1, null],
  ['#page=2&item=../../etc', 2, null],
  ['#page=2&item=<img src=x>', 2, null],
  ['#media', null, null],
])('the hash %j leads to page %j and item %j', (hash, page, item) => {
  expect(parseHash(hash)).toMatchObject({ page, item })
})

test.each([
  ['#kind=video&time=week&name=lake+view', { ...noChoice, kind: 'video', time: 'week', name: 'lake view' }],
  ['#order=oldest&view=list', { ...noChoice, order: 'oldest', view: 'list' }],
  ['#kind=toString&time=&order=up&view=pages', noChoice],
  [`#name=${'a+'.repeat(12)}`, { ...noChoice, name: 'a a a a a a a a' }],
])('G30 the hash %j shows the list %j', (hash, list) => {
  expect(parseHash(hash).list).toEqual(list)
})

test('#trash is the trash, without a page and an item', () => {
  expect(parseHash('#trash')).toEqual({ page: null, item: null, trash: true })
  expect(formatHash(parseHash('#trash'))).toBe('#trash')
})

test('#tokens is the list of tokens', () => {
  expect(parseHash('#tokens')).toEqual({ page: null, item: null, tokens: true })
  expect(formatHash(parseHash('#tokens'))).toBe('#tokens')
})

test('a formatted route is parsed to the same route', () => {
  const routes: readonly Route[] = [
    { page: null, item: null, list: noChoice },
    { page: null, item: '2v8d', list: noChoice },
    { page: null, item: '2v8d', list: { ...noChoice, kind: 'video', name: 'a & b=ü#', order: 'oldest' } },
    { page: null, item: null, list: { ...noChoice, time: 'week', view: 'list' } },
    { page: 1, item: null },
    { page: 99_999, item: 'k92v8d0q3h5wkc9r1n6x7zjy4tam' },
  ]
  for (const route of routes) expect(parseHash(formatHash(route))).toEqual(route)
})

test('an invalid page number is detected; none, and one with leading zeros, are valid', () => {
  for (const hash of ['#page=', '#page=0', '#page=two&item=2v8d', '#page=1e3'])
    expect([hash, hasInvalidPage(hash)]).toEqual([hash, true])
  for (const hash of ['', '#item=2v8d', '#page=3', '#page=03&item=2v8d', '#media'])
    expect([hash, hasInvalidPage(hash)]).toEqual([hash, false])
})

test('a typed page number may have spaces and leading zeros, and nothing else', () => {
  expect([' 12 ', '007', '1'].map(pageNumberOf)).toEqual([12, 7, 1])
  expect(['', '0', '1.5', '-1', 'x', '1 2', '99999999999999999999'].map(pageNumberOf)).toEqual(
    Array(7).fill(null),
  )
})
