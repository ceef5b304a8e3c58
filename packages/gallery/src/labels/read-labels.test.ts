import { expect, test } from 'vitest'
import { changedLabels, type LabelMistake, readLabels } from './read-labels.ts'

test.each<[string, [string, string][], object]>([
  [
    'empty rows are left out',
    [
      ['', ''],
      ['a', '1'],
      [' ', '\t'],
    ],
    { a: '1' },
  ],
  ['spaces around keys and values are removed', [[' a ', ' b c ']], { a: 'b c' }],
  ['keys get lower-case letters', [['Key', 'Value']], { key: 'Value' }],
  ['a label in the field of the key is divided', [['Key = a=b', ' ']], { key: 'a=b' }],
  ['a value may be empty', [['a', '']], { a: '' }],
  ['a value has 200 characters of Unicode', [['a', '🖼'.repeat(200)]], { a: '🖼'.repeat(200) }],
])('G39, M7 %s', (_, rows, labels) => {
  expect(readLabels(rows)).toEqual(labels)
})

const many = Array.from({ length: 17 }, (_, row): [string, string] => [`k${row}`, ''])

test.each<[string, [string, string][], LabelMistake]>([
  ['a value without a key', [['', '1']], { row: 0, field: 'key', reason: 'noKey', text: '1' }],
  ['a label without a key', [['= 1', '']], { row: 0, field: 'key', reason: 'noKey', text: '1' }],
  [
    'a key with a space',
    [
      ['a', ''],
      ['My key', '1'],
    ],
    { row: 1, field: 'key', reason: 'badKey', text: 'My key' },
  ],
  [
    'a key with a letter that is not ASCII',
    [['größe', '1']],
    { row: 0, field: 'key', reason: 'badKey', text: 'größe' },
  ],
  // Lower-casing this letter would yield an ASCII one.
  ['the Kelvin sign', [['\u212a', '1']], { row: 0, field: 'key', reason: 'badKey', text: '\u212a' }],
  ['a long key', [['k'.repeat(41), '']], { row: 0, field: 'key', reason: 'badKey', text: 'k'.repeat(41) }],
  ['an equals sign beside a value', [['a=b', 'c']], { row: 0, field: 'key', reason: 'badKey', text: 'a=b' }],
  ['a long value', [['a', 'v'.repeat(201)]], { row: 0, field: 'value', reason: 'badValue', text: 'a' }],
  [
    'a value with a control character',
    [['a', 'b\tc']],
    { row: 0, field: 'value', reason: 'badValue', text: 'a' },
  ],
  [
    'a value that is not well-formed',
    [['a', '\ud800']],
    { row: 0, field: 'value', reason: 'badValue', text: 'a' },
  ],
  [
    'one key twice',
    [
      ['a', '1'],
      ['A', '2'],
    ],
    { row: 1, field: 'key', reason: 'twice', text: 'A' },
  ],
  ['a seventeenth label', many, { row: 16, field: 'key', reason: 'tooMany', text: 'k16' }],
])('G39, M7 %s is a mistake', (_, rows, mistake) => {
  expect(readLabels(rows)).toEqual(mistake)
})

test('G32, M7 keys that every object has are added, changed and removed as others', () => {
  for (const key of ['__proto__', 'constructor', 'a']) {
    const [none, one, two] = [{}, Object.fromEntries([[key, '1']]), Object.fromEntries([[key, '2']])]
    expect(Object.entries(changedLabels(none, one))).toEqual([[key, '1']])
    expect(Object.entries(changedLabels(one, two))).toEqual([[key, '2']])
    expect(Object.entries(changedLabels(one, none))).toEqual([[key, null]])
    expect(Object.entries(changedLabels(one, one))).toEqual([])
  }
})
