import { afterEach, expect, test, vi } from 'vitest'
import { createBufferedLogLines, readableLogLines } from './service-log.ts'

afterEach(() => void vi.useRealTimers())

/** A pipe that takes `room` bytes, then is full until it is read. */
function pipe(room: number) {
  let taken = ''
  let left = room
  return {
    taken: () => taken,
    read(bytes: number) {
      left += bytes
    },
    write(bytes: Uint8Array): number {
      if (left === 0) throw Object.assign(new Error('full'), { code: 'EAGAIN' })
      const now = Buffer.from(bytes).subarray(0, left)
      taken += now.toString('latin1')
      left -= now.length
      return now.length
    },
  }
}

const line = (index: number) => `line ${index} ${'x'.repeat(100)}\n`
const lines = (count: number) => Array.from({ length: count }, (_, index) => line(index))

test('lines are written in batches, after a short delay at most', () => {
  vi.useFakeTimers()
  const write = vi.fn((bytes: Uint8Array) => bytes.length)
  const log = createBufferedLogLines(write)
  for (const each of lines(100)) log.write(each)
  expect(write).toHaveBeenCalledTimes(1)
  vi.advanceTimersByTime(1_000)
  expect(write).toHaveBeenCalledTimes(2)
})

test('lines that a full pipe does not accept are written later, complete and in order', () => {
  vi.useFakeTimers()
  const slow = pipe(5_000)
  const log = createBufferedLogLines(slow.write)
  for (const each of lines(300)) log.write(each)
  expect(slow.taken()).toHaveLength(5_000)
  for (let i = 0; i < 100; i += 1) {
    slow.read(500)
    vi.advanceTimersByTime(1_000)
  }
  expect(slow.taken()).toBe(lines(300).join(''))
})

test('flushSync writes the buffered lines at once', () => {
  const roomy = pipe(1_000)
  const log = createBufferedLogLines(roomy.write)
  log.write('fatal\n')
  expect(roomy.taken()).toBe('')
  log.flushSync()
  expect(roomy.taken()).toBe('fatal\n')
})

test('a failed write loses its lines and throws no error', () => {
  let broken = true
  let taken = ''
  const log = createBufferedLogLines((bytes) => {
    if (broken) throw Object.assign(new Error('no space left'), { code: 'ENOSPC' })
    taken += Buffer.from(bytes).toString()
    return bytes.length
  })
  log.write('lost\n')
  log.flushSync()
  broken = false
  log.write('kept\n')
  log.flushSync()
  expect(taken).toBe('kept\n')
})

const toReadable = readableLogLines(process.stderr)
const readable = (members: object) =>
  toReadable(JSON.stringify({ level: 30, time: 0, ...members })).replace(/^\d\d:\d\d:\d\d /, '')
const hostile = 'a\u001b[2J\u009b31m\r\nb\u202ec\u0007'
const harmless = 'a�[2J�31m��b�c�'

test('O10 control characters of paths, names and messages are not written', () => {
  expect(readable({ msg: 'completed', method: 'GET', path: hostile, status: 200, ms: 1 })).toBe(
    `200 GET    ${harmless} 1 ms\n`,
  )
  expect(readable({ msg: hostile, [hostile]: hostile })).toBe(`${harmless} ${harmless}=${harmless}\n`)
  expect(readable({ msg: 'x', names: { [hostile]: 1 } })).not.toContain('\u009b')
})

test('O10 the cause of an error follows it, line by line, without control characters', () => {
  const stack = 'Error: \u001b[31mred\n    at file.ts:1:2'
  expect(readable({ level: 50, msg: 'it failed', err: { type: 'Error', stack } })).toBe(
    'error: it failed\n    Error: �[31mred\n        at file.ts:1:2\n',
  )
})

test('O10 an aborted request is marked, with and without a status', () => {
  const request = { method: 'GET', path: '/', ms: 2.5, msg: 'aborted' }
  expect(readable({ ...request, status: null })).toBe('cut GET    / 2.5 ms\n')
  expect(readable({ ...request, status: 200 })).toBe('200 GET    / 2.5 ms, aborted\n')
})
