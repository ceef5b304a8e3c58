import { expect, test } from 'vitest'
import { namesType, weightOf } from '../../../src/http/headers/accept.ts'

test.each([
  'text/html',
  'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8',
  'application/xml, TEXT/HTML;q=0.5',
  'text/html;charset=utf-8',
  'text/html;q=0.05',
])('Accept: %s names text/html', (accept) => {
  expect(namesType(accept, 'text/html')).toBe(true)
})

test.each([
  undefined,
  '',
  '*/*',
  'text/*',
  'text/plain',
  'text/html;q=0',
  'text/html; q=0.000',
  'text/htmlx',
])('Accept: %s does not name text/html', (accept) => {
  expect(namesType(accept, 'text/html')).toBe(false)
})

test.each([
  ['text/html', 1],
  ['text/html;q=0.5', 0.5],
  ['text/html; level=1; Q=0.25, text/plain', 0.25],
  ['text/plain;q=0.9, text/html;q=0.1', 0.1],
  ['text/html;q=x', 1],
  ['text/plain', 0],
])('Accept: %s gives text/html the weight %d', (accept, weight) => {
  expect(weightOf(accept, 'text/html')).toBe(weight)
})
