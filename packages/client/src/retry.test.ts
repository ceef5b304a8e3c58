import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { AnswerError, ConnectionError, ShapeError, TimeoutError } from './index.ts'
import { delayAfter, readRetryAfter, retryPolicy } from './retry.ts'

const now = Date.parse('2026-11-21T10:00:00Z')
beforeEach(() => {
  vi.useFakeTimers({ toFake: ['Date'], now })
})
afterEach(() => {
  vi.useRealTimers()
  vi.restoreAllMocks()
})

const refused = (status: number, retryAfter: number | null = null) =>
  new AnswerError(
    {
      method: 'GET',
      url: 'http://h.example/',
      status,
      headers: new Headers(),
      body: '',
      attempts: 1,
      retryAfter,
    },
    '',
  )
const policy = retryPolicy()

test('the delay doubles with every retry, and half of it is random', () => {
  const random = vi.spyOn(Math, 'random')
  for (const [value, waits] of [
    [0, [250, 500, 1000]],
    [0.5, [375, 750, 1500]],
    [1, [500, 1000, 2000]],
  ] as const) {
    random.mockReturnValue(value)
    expect([1, 2, 3].map((attempt) => delayAfter(refused(503), attempt, policy))).toEqual(waits)
  }
})

test('no delay is longer than maxDelay', () => {
  vi.spyOn(Math, 'random').mockReturnValue(1)
  const many = retryPolicy({ attempts: 100, maxDelay: 4000 })
  expect(delayAfter(refused(503), 50, many)).toBe(4000)
  expect(delayAfter(refused(503, 4000), 1, many)).toBe(4000)
})

test('there is no retry after the last attempt', () => {
  expect(delayAfter(refused(503), 4, policy)).toBeNull()
  expect(delayAfter(refused(503), 1, retryPolicy({ attempts: 1 }))).toBeNull()
})

test.each([408, 429, 502, 503, 504])('%d is retried', (status) => {
  expect(delayAfter(refused(status), 1, policy)).toBeGreaterThan(0)
})

test.each([301, 400, 401, 403, 404, 409, 413, 500, 501, 507])('%d is not retried', (status) => {
  expect(delayAfter(refused(status), 1, policy)).toBeNull()
})

test('failed connections and timeouts are retried, invalid responses and aborts are not', () => {
  expect(delayAfter(new ConnectionError(null), 1, policy)).toBeGreaterThan(0)
  expect(delayAfter(new TimeoutError(1), 1, policy)).toBeGreaterThan(0)
  expect(delayAfter(new ShapeError('a page', '', ''), 1, policy)).toBeNull()
  expect(delayAfter(new DOMException('', 'AbortError'), 1, policy)).toBeNull()
})

test('Retry-After is the minimum delay, and jitter is added to it', () => {
  const random = vi.spyOn(Math, 'random').mockReturnValue(0)
  expect(delayAfter(refused(429, 7000), 1, policy)).toBe(7250)
  random.mockReturnValue(1)
  expect(delayAfter(refused(429, 7000), 1, policy)).toBe(7500)
})

test('a Retry-After above maxDelay disables the retry', () => {
  expect(delayAfter(refused(503, 30_001), 1, policy)).toBeNull()
})

test.each<[string | null, number | null]>([
  ['0', 0],
  ['120', 120_000],
  [' 7 ', 7000],
  ['Sat, 21 Nov 2026 10:00:09 GMT', 9000],
  ['Saturday, 21-Nov-26 10:00:09 GMT', 9000],
  ['Sat Nov 21 10:00:09 2026', 9000],
  ['Sat, 99 Nov 2026 99:00:00 GMT', null],
  ['Sat, 21 Nov 2026 09:00:00 GMT', 0],
  ['1.5', null],
  ['-1', null],
  ['soon', null],
  ['', null],
  [null, null],
])('RFC 9110 10.2.3 Retry-After %j is %s ms', (value, milliseconds) => {
  expect(readRetryAfter(new Headers(value === null ? {} : { 'retry-after': value }))).toBe(milliseconds)
})

test('a date in Retry-After is relative to the Date of the response, if there is one', () => {
  const headers = {
    date: 'Sat, 21 Nov 2026 12:00:00 GMT',
    'retry-after': 'Sat, 21 Nov 2026 12:00:05 GMT',
  }
  expect(readRetryAfter(new Headers(headers))).toBe(5000)
})

test.each([
  { attempts: 0 },
  { attempts: 1.5 },
  { attempts: Number.NaN },
  { delay: -1 },
  { delay: Number.NaN },
  { maxDelay: -1 },
  { maxDelay: Number.POSITIVE_INFINITY },
])('the retry options %j are refused', (options) => {
  expect(() => retryPolicy(options)).toThrow(TypeError)
})
