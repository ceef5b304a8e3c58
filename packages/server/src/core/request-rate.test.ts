import { expect, test } from 'vitest'
import { parseRequestRate } from './request-rate.ts'

test.each([
  ['600/1m', { requests: 600, window: 60_000 }],
  ['1/1s', { requests: 1, window: 1000 }],
  ['999999999/1d', { requests: 999_999_999, window: 86_400_000 }],
  ['5/2000ms', { requests: 5, window: 2000 }],
  ['off', null],
  ['0', null],
])('%j is the rate %j', (text, rate) => {
  expect(parseRequestRate(text)).toEqual(rate)
})

test.each(['', '600', '600/', '600/m', '0/1m', '-1/1m', '1.5/1s', '600/1500ms', '600/2d', '600 / 1m', 'on'])(
  '%j is not a rate',
  (text) => {
    expect(parseRequestRate(text)).toBe(undefined)
  },
)
