import { expect, test } from 'vitest'
import { readableLogLines } from './service-log.ts'

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
