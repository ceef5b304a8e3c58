import { expect, test } from 'vitest'
import { excerpt, readProblem } from './responses.ts'

const type = 'application/problem+json; charset=utf-8'

test('RFC 9457 a problem is parsed with its extensions', () => {
  const problem = {
    type: 'https://h.example/problems/page-malformed',
    title: 'The page number is malformed',
    status: 400,
    detail: 'page must be …',
    instance: 'req-1',
    code: 'page-malformed',
    errors: [{ parameter: 'page', detail: 'a whole number', minimum: 1, maximum: 9, later: {} }],
    accepted: ['a', 'b'],
    balance: 30,
  }
  expect(readProblem(type, JSON.stringify(problem))).toEqual(problem)
})

test('RFC 9457 3.1 members of the wrong type are ignored, a missing type is about:blank', () => {
  const wrong = {
    type: 7,
    title: 1,
    status: '400',
    detail: {},
    code: null,
    errors: ['x', { parameter: 'a' }, { parameter: 'a', detail: 'b', accepted: 'c', maximum: '9', unit: 3 }],
    accepted: [1],
    maximum: null,
  }
  expect(readProblem(type, JSON.stringify(wrong))).toEqual({
    type: 'about:blank',
    errors: [{ parameter: 'a', detail: 'b' }],
  })
})

test.each([
  ['application/json', '{"type":"x"}'],
  [null, '{"type":"x"}'],
  [type, '[]'],
  [type, 'null'],
  [type, '{"type"'],
  [type, ''],
])('a response that is not a problem: %s %s', (contentType, body) => {
  expect(readProblem(contentType, body)).toBeNull()
})

test('a message quotes only text and JSON, in one short line', () => {
  expect(excerpt('application/json', '{"message":\n "Unauthenticated."}')).toBe(
    '{"message": "Unauthenticated."}',
  )
  expect(excerpt('text/plain', 'a\u001b[31m\r\nb')).toBe('a [31m b')
  expect(excerpt('text/plain', 'x'.repeat(1000))).toBe(`${'x'.repeat(200)}…`)
  expect(excerpt('text/html', '<p>no</p>')).toBe('')
  expect(excerpt(null, 'no')).toBe('')
})
