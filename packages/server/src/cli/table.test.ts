import { expect, test } from 'vitest'
import { formatCount, table } from './table.ts'

const shape = [
  { header: 'NAME', cell: ({ name }: { name: string; size: number }) => name },
  { header: 'SIZE', cell: ({ size }: { name: string; size: number }) => `${size}`, alignRight: true },
  { header: 'LAST', cell: () => 'x' },
]
const rows = [
  { name: 'photos', size: 7 },
  { name: '写真', size: 12345 },
]

test('on a terminal, columns are as wide as their widest cell, and numbers are right-aligned', () => {
  expect(table(shape, rows, { header: true })).toEqual([
    'NAME     SIZE  LAST',
    'photos      7  x',
    '写真    12345  x',
  ])
})

test('without a header a table has only its rows, and no rows give no lines', () => {
  expect(table(shape, rows, { header: false })).toEqual(['photos      7  x', '写真    12345  x'])
  expect(table(shape, [], { header: false })).toEqual([])
})

test.each([
  [0, '0 items'],
  [1, '1 item'],
  [2, '2 items'],
])('formatCount of %d is %s', (count, text) => {
  expect(formatCount(count, 'item')).toBe(text)
})
