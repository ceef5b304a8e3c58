import { expect, test } from 'vitest'
import { strings } from '../src/strings.ts'
import { ownUploadUrl } from '../src/uploads/own-origin.ts'
import { problemDetail } from '../src/uploads/problem-detail.ts'
import { refusal } from '../src/uploads/refusal.ts'
import { mayFit, mostUrgent, totalsOf, type UploadRow } from '../src/uploads/upload-row.ts'

test.each([
  ['https://media.example.org/api/uploads/2azf7zjf', 'http://10.0.0.5:8080/api/uploads/2azf7zjf'],
  ['https://media.example.org/box/api/uploads/2azf7zjf?x=1', 'http://10.0.0.5:8080/api/uploads/2azf7zjf'],
  ['http://10.0.0.5:8080/api/uploads', 'http://10.0.0.5:8080/api/uploads'],
  ['https://elsewhere.example/steal', 'http://10.0.0.5:8080/api/uploads'],
])('an upload at %s is reached at %s, on the page’s own origin', (told, reached) => {
  expect(ownUploadUrl(told, 'http://10.0.0.5:8080/api/uploads')).toBe(reached)
})

test('a problem is told in its own words, and what is none is not', () => {
  expect(problemDetail('{"title":"Full","detail":"The bucket holds 3 of 3 files."}')).toBe(
    'The bucket holds 3 of 3 files.',
  )
  expect(problemDetail('{"title":"Full"}')).toBe('Full')
  for (const body of ['<html>', '', 'null', '"x"', '{"detail":1}']) expect(problemDetail(body)).toBeNull()
})

const row = (state: UploadRow['state'], size: number, sent: number): UploadRow => ({
  id: `${state}-${size}`,
  name: 'x',
  contentType: '',
  size,
  sent,
  state,
  reason: '',
})

test('what moves comes first, then what needs somebody, what is done at the end, each in its order', () => {
  const rows = [
    row('done', 1, 1),
    row('waiting', 2, 0),
    row('sending', 3, 1),
    row('failed', 4, 0),
    row('waiting', 5, 0),
  ]
  const sizes = (most: number) => mostUrgent(rows, most).map(({ size }) => size)
  expect(sizes(5)).toEqual([3, 4, 2, 5, 1])
  expect(sizes(4)).toEqual([3, 4, 2, 5])
})

test('Q1 a file may fit unless it is larger than its bucket may ever be', () => {
  expect([null, 10, 9].map((limit) => mayFit(row('failed', 10, 0), limit))).toEqual([true, true, false])
})

test('R12 a file that is too large is told with the limit, where the server names it', () => {
  const problem = (detail: string) => JSON.stringify({ title: 'The file is too large', detail })
  expect(refusal(413, problem('A file may have at most 5000000 bytes.'))).toBe(
    strings.uploads.tooLargeFor('5 MB'),
  )
  for (const body of [problem('Maximum size exceeded.'), '<html>413 Request Entity Too Large</html>'])
    expect(refusal(413, body)).toBe(strings.uploads.tooLarge)
  expect(refusal(507, problem('The bucket holds 3 of 3 files.'))).toBe('The bucket holds 3 of 3 files.')
  expect(refusal(400, '')).toBe(strings.uploads.unknown)
})

test('totals count files by their state, and bytes; an empty file counts when it is done', () => {
  const rows = [
    row('done', 0, 0),
    row('done', 60, 60),
    row('sending', 20, 9),
    row('paused', 10, 0),
    row('waiting', 5, 0),
    row('failed', 4, 0),
    row('needed', 0, 0),
  ]
  expect(totalsOf(rows)).toEqual({ left: 3, done: 2, failed: 1, needed: 1, paused: 1, share: 70 / 101 })
  expect(totalsOf([])).toMatchObject({ left: 0, share: 0 })
})
