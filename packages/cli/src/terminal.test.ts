import { stripVTControlCharacters } from 'node:util'
import { expect, test } from 'vitest'
import { createProgressBars, fitEnd, formatCount, formatSize, printableText, table } from './terminal.ts'

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

function terminal(size: { columns?: number; rows?: number; isTTY?: boolean } = {}) {
  const written: string[] = []
  return { isTTY: true, columns: 80, rows: 24, ...size, written, write: (text: string) => written.push(text) }
}

const bar = (name: string, done: number, total = 1_000) => ({ name, done, total })
const linesOf = (text = '') => stripVTControlCharacters(text).trimEnd().split('\n')

test('each bar is a line with its percentage and size, and clear erases all lines', () => {
  const screen = terminal()
  const bars = createProgressBars(screen, () => 0)
  bars.show([bar('a.txt', 250), bar('all', 1_000)])
  expect(linesOf(screen.written[0])).toEqual([
    expect.stringMatching(/^a\.txt +█{8}░{22} {2}25% +1\.0 kB$/),
    expect.stringMatching(/^all +█{30} 100% +1\.0 kB$/),
  ])
  bars.clear()
  expect(screen.written[1]).toBe('\x1b[2F\x1b[J')
  bars.clear()
  expect(screen.written).toHaveLength(2)
})

test('bars are drawn a few times a second at most', () => {
  const screen = terminal()
  let time = 0
  const bars = createProgressBars(screen, () => time)
  for (; time < 800; time += 1) bars.show([bar('a', time)])
  expect(screen.written.filter((text) => text.includes('%'))).toHaveLength(10)
})

test('a bar shows the speed of the last ten seconds and the time left, without what was sent before', () => {
  const screen = terminal()
  let time = 0
  const bars = createProgressBars(screen, () => time)
  const show = (seconds: number, done: number) => {
    time = seconds * 1_000
    bars.show([{ name: '1 of 2 files', done, total: 1_000_000_000, skipped: 500_000_000 }])
    return linesOf(screen.written.at(-1))[0]
  }
  expect(show(0, 500_000_000)).toMatch(/^1 of 2 files +█{9}░{9} {2}50% +1\.0 GB$/)
  expect(show(2, 510_000_000)).toMatch(/^1 of 2 files +█+░+ {2}51% +1\.0 GB {2}5\.0 MB\/s, 1:38 left$/)
  for (let second = 3; second < 30; second += 1) show(second, 510_000_000)
  expect(show(30, 510_000_000)).toMatch(/ 0 B\/s$/)
  expect(show(40, 520_000_000)).toMatch(/ {2}1\.0 MB\/s, 8:00 left$/)
  expect((show(41, 521_000_000) ?? '').length).toBeLessThan(80)
})

test('a bar whose total is unknown shows what is done', () => {
  const screen = terminal()
  createProgressBars(screen, () => 0).show([{ name: 'input', done: 2_000, total: null, skipped: 0 }])
  expect(linesOf(screen.written[0])[0]).toMatch(/^input +░{18} +2\.0 kB$/)
})

test('without a terminal nothing is written', () => {
  const screen = terminal({ isTTY: false })
  createProgressBars(screen).show([bar('a', 1)])
  expect(screen.written).toEqual([])
})

test.each([1, 8, 20, 40, 41, 60, 200])('no line is longer than %d columns', (columns) => {
  const screen = terminal({ columns })
  createProgressBars(screen).show([bar('a name that is quite long '.repeat(9), 500)])
  for (const line of linesOf(screen.written[0])) expect(line.length).toBeLessThan(Math.max(columns, 2))
})

test('with few rows the last bars are drawn, including the total', () => {
  const screen = terminal({ rows: 3 })
  createProgressBars(screen).show([bar('a', 1), bar('b', 1), bar('all', 2)])
  expect(linesOf(screen.written[0]).map((line) => line.split(' ')[0])).toEqual(['b', 'all'])
})

test('an empty file is complete', () => {
  const screen = terminal()
  createProgressBars(screen).show([bar('empty', 0, 0)])
  expect(screen.written[0]).toContain('100%')
})

test('long names lose their start, measured in columns, and control characters are removed', () => {
  expect(fitEnd('short', 8)).toBe('short   ')
  expect(fitEnd('exactly8', 8)).toBe('exactly8')
  expect(fitEnd('a/long/path', 8)).toBe('…ng/path')
  expect(fitEnd('写真写真', 6)).toBe('…写真 ')
  expect(printableText('a\x1b[2J\r\nb\u202e')).toBe('a\ufffd[2J\ufffd\ufffdb\ufffd')
})

test.each([
  [0, '0 B'],
  [999, '999 B'],
  [1_000, '1.0 kB'],
  [999_949, '999.9 kB'],
  [999_950, '1.0 MB'],
  [1_550_000, '1.6 MB'],
  [5e15, '5000.0 TB'],
])('%d bytes are %s', (bytes, text) => {
  expect(formatSize(bytes)).toBe(text)
})
