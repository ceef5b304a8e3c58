import fc from 'fast-check'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { type LogDestination, LogLines } from './log-lines.ts'

// A log retries while its pipe is full. With real timers, the retries would run during other tests.
beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

/** A pipe that takes `room` bytes, then is full until it is read. It fails where it is broken. */
function pipe(room: number) {
  let taken = ''
  let left = room
  let isBroken = false
  function write(bytes: Uint8Array): number {
    if (isBroken) throw Object.assign(new Error('no space left'), { code: 'ENOSPC' })
    const now = Buffer.from(bytes).subarray(0, left)
    taken += now.toString('latin1')
    left -= now.length
    return now.length
  }
  return {
    taken: () => taken,
    read(bytes: number) {
      left += bytes
    },
    breakUntil: (end: boolean) => {
      isBroken = !end
    },
    write,
    writeLast: write,
  }
}

const loss = (lines: number) => `${lines} dropped\n`
const open = (destination: LogDestination) => new LogLines(destination, loss)
const line = (index: number) => `line ${index} ${'x'.repeat(100)}\n`
const lines = (count: number) => Array.from({ length: count }, (_, index) => line(index))

test('lines are written in batches, after a short delay at most', () => {
  const write = vi.fn((bytes: Uint8Array) => bytes.length)
  const log = open({ write, writeLast: write })
  for (const each of lines(100)) log.write(each)
  expect(write).toHaveBeenCalledTimes(1)
  vi.advanceTimersByTime(1_000)
  expect(write).toHaveBeenCalledTimes(2)
})

test('lines that a full pipe does not accept are written later, complete and in order', () => {
  const slow = pipe(5_000)
  const log = open(slow)
  for (const each of lines(300)) log.write(each)
  expect(slow.taken()).toHaveLength(5_000)
  for (let i = 0; i < 100; i += 1) {
    slow.read(500)
    vi.advanceTimersByTime(1_000)
  }
  expect(slow.taken()).toBe(lines(300).join(''))
})

test('flushSync writes the buffered lines at once, and does not wait for a full pipe', () => {
  const small = pipe(8)
  const log = open(small)
  log.write('fatal\n')
  expect(small.taken()).toBe('')
  log.flushSync()
  log.write('fatal\n')
  log.flushSync()
  expect(small.taken()).toBe('fatal\nfa')
})

test('O3 lines that the buffer has no room for are dropped; the next line after it was written says how many', () => {
  const stalled = pipe(0)
  const log = open(stalled)
  const all = lines(30_000)
  for (const each of all) log.write(each)
  const dropped = log.dropped
  expect(dropped).toBeGreaterThan(1_000)
  stalled.read(Infinity)
  vi.advanceTimersByTime(1_000)
  log.write('later\n')
  vi.advanceTimersByTime(1_000)
  expect(stalled.taken()).toBe(`${all.slice(0, all.length - dropped).join('')}${loss(dropped)}later\n`)
})

test('O3 a failed write loses its lines, which are counted, and throws no error', () => {
  const disk = pipe(10)
  const log = open(disk)
  log.write('written\nlost\n')
  log.flushSync()
  disk.breakUntil(false)
  log.write('lost too\n')
  log.flushSync()
  expect(log.dropped).toBe(2)
  disk.breakUntil(true)
  disk.read(Infinity)
  log.write('later\n')
  log.flushSync()
  // The part of a line is ended, so that the next line is one of its own.
  expect(disk.taken()).toBe(`written\nlo\n${loss(2)}later\n`)
})

test('O3 in any sequence of writes, stalls and failures, lines stay in order, and each is written or counted', () => {
  const step = fc.oneof(
    fc.record({ kind: fc.constant('lines' as const), count: fc.integer({ min: 1, max: 9_000 }) }),
    fc.record({ kind: fc.constant('read' as const), count: fc.integer({ min: 1, max: 600_000 }) }),
    fc.record({ kind: fc.constant('break' as const), count: fc.nat(1) }),
    fc.record({ kind: fc.constant('time' as const), count: fc.integer({ min: 1, max: 300 }) }),
  )
  fc.assert(
    fc.property(fc.array(step, { maxLength: 30 }), (steps) => {
      const disk = pipe(0)
      const log = open(disk)
      let sent = 0
      for (const { kind, count } of steps) {
        if (kind === 'lines') for (let i = 0; i < count; i += 1) log.write(line(sent++))
        if (kind === 'read') disk.read(count)
        if (kind === 'break') disk.breakUntil(count === 1)
        if (kind === 'time') vi.advanceTimersByTime(count)
      }
      disk.breakUntil(true)
      disk.read(Infinity)
      vi.advanceTimersByTime(1_000)
      log.write(line(sent++))
      vi.advanceTimersByTime(1_000)
      const whole = disk.taken().match(/^line \d+ x{100}$/gm) ?? []
      const numbers = whole.map((text) => Number(text.split(' ')[1]))
      expect(numbers).toEqual([...numbers].sort((a, b) => a - b))
      expect(new Set(numbers).size).toBe(numbers.length)
      expect(numbers.at(-1)).toBe(sent - 1)
      expect(numbers.length + log.dropped).toBe(sent)
      const reported = (disk.taken().match(/^\d+ dropped$/gm) ?? []).map((text) => Number.parseInt(text, 10))
      expect(reported.reduce((sum, count) => sum + count, 0)).toBe(log.dropped)
    }),
    { numRuns: 60 },
  )
})
