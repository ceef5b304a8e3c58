import { expect, test } from 'vitest'
import * as readers from '../../src/service/setting-readers.ts'

test.each([
  ['host name', readers.hostName, [['::1', '::1']], ['a b', 'x/y']],
  [
    'whole number',
    readers.wholeNumber(1, 64),
    [
      ['1', 1],
      ['64', 64],
    ],
    ['0', '65', '1.5', '-1', '1e1', ''],
  ],
  ['choice', readers.oneOf('a', 'b', 'c'), [['b', 'b']], ['d', 'A', '']],
  [
    'switch',
    readers.onOrOff,
    [
      ['on', true],
      ['off', false],
    ],
    ['yes', 'true', ''],
  ],
  [
    'duration in milliseconds',
    readers.duration,
    [
      ['500ms', 500],
      ['30d', 2_592_000_000],
    ],
    ['30', '0s', '1.5s'],
  ],
  ['duration of a timer', readers.timerDuration, [['20d', 1_728_000_000]], ['21d', '3w', '30']],
  [
    'size in bytes',
    readers.size('1MB'),
    [
      ['1MB', 1_000_000],
      ['1MiB', 1_048_576],
      ['7', 7],
    ],
    ['0', '-1', '1XB'],
  ],
  [
    'size or zero',
    readers.sizeOrZero('1MB'),
    [
      ['0', 0],
      ['2KB', 2_000],
    ],
    ['-1', 'none'],
  ],
  [
    'size or auto',
    readers.sizeOrAuto,
    [
      ['auto', null],
      ['0', 0],
      ['1GB', 1e9],
    ],
    ['off'],
  ],
  [
    'rate',
    readers.rate,
    [
      ['600/1m', { requests: 600, window: 60_000 }],
      ['off', null],
      ['0', null],
    ],
    ['600', '1/1ms'],
  ],
  [
    'base URL',
    readers.baseUrl('without query', 'https://example.org'),
    [
      ['', null],
      ['https://example.org/box/', 'https://example.org/box'],
    ],
    ['example.org', 'ftp://example.org', 'https://u:p@example.org', 'https://example.org/?q'],
  ],
  [
    'web origins',
    readers.webOrigins,
    [
      ['', []],
      ['https://a.example, *', ['https://a.example', '*']],
    ],
    ['https://a.example/path', 'a.example', 'https://a.example/'],
  ],
  [
    'database URL',
    readers.databaseUrl,
    [
      ['', null],
      ...[
        'postgres://db.example/media',
        'postgresql://u:p@1.2.3.4:5433,[::1]:5432/media?sslmode=require',
        'postgres:///media',
      ].map((url) => [url, url] as const),
    ],
    ['mysql://db.example/media', 'postgres://a:1,b:x/media', 'postgres:media', 'db.example'],
  ],
  [
    'address ranges',
    readers.addressRanges,
    [['::1, 10.0.0.0/8', ['::1', '10.0.0.0/8']]],
    ['10.0.0.0/0', 'proxy'],
  ],
] as const)(
  'O7 a %s is read in its unit, and any other text is refused',
  (_name, reader, accepted, refused) => {
    for (const [text, value] of accepted) expect(reader.read(text)).toEqual(value)
    for (const text of refused) expect([text, reader.read(text)]).toEqual([text, undefined])
  },
)

test('O7 the message of a choice lists every choice', () => {
  expect(readers.oneOf('a', 'b', 'c').accepts).toBe('a, b or c')
  expect(readers.oneOf('a', 'b').accepts).toBe('a or b')
})
