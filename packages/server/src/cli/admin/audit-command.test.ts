import { expect, test } from 'vitest'
import type { NamedEvent } from '../../audit/audit-operations.ts'
import { service } from '../../core/token-rules.ts'
import { csv, jsonLines, table } from './audit-command.ts'

const name = '\u001b[2J \u009b2J \u202e"\n'
const event: NamedEvent = {
  time: 0,
  uid: '1',
  action: 'upload',
  by: service,
  bucketId: null,
  bucket: null,
  target: 'id',
  name,
  size: 1,
  detail: {},
}
const control = /[\p{Cc}\p{Bidi_Control}]/u

test('Y6 a name with control characters does not reach a terminal', () => {
  expect(csv({ isTerminal: true }).line(event)).not.toMatch(control)
  expect(table({ header: true }).line(event)).not.toMatch(control)
})

test('Y6 JSON has no control characters, and CSV that is not for a terminal has the exact name', () => {
  const line = jsonLines.line(event)
  expect(line).not.toMatch(control)
  expect(JSON.parse(line)).toMatchObject({ file: { name } })
  expect(csv({ isTerminal: false }).line(event)).toContain(name.replaceAll('"', '""'))
})

test.each([
  ['=1+1', "'=1+1"],
  ['@SUM(A1)', "'@SUM(A1)"],
  [' -1', " '-1"],
  ['\uff1d1+1', "'\uff1d1+1"],
  ['\uff20x', "'\uff20x"],
  ['a;=1+1', "a;'=1+1"],
  ['a-b=c.txt', 'a-b=c.txt'],
])('Y6 the name %j is no formula of a spreadsheet', (filename, cell) => {
  expect(csv({ isTerminal: false }).line({ ...event, name: filename })).toContain(`,${cell},1,`)
})
