import { createHash } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import {
  parseByteCount,
  parseChecksum,
  parseConcat,
  parseDeferLength,
  parseMetadata,
  parseUploadHeaders,
  verifyChecksum,
} from '../../src/uploads/resumable-headers.ts'

const malformed = expect.objectContaining({ code: 'upload-malformed' })

describe('R4, R12 Upload-Length and Upload-Offset: "The value MUST be a non-negative integer."', () => {
  test.each([0, 1, 10, 4_096, Number.MAX_SAFE_INTEGER])('accept %d', (count) => {
    expect(parseByteCount(`${count}`, 'Upload-Length')).toBe(count)
  })

  test.each([
    ...['', ' ', '-1', '+1', '-0', '00', '01', '1.0', '1.5', '.5', '1,0', '1 000', '0x10', '0b1', '1n'],
    ...['1e3', '1e+21', '1e+308', 'Infinity', 'NaN', '٣', '5, 5', '9007199254740993', '9'.repeat(400)],
  ])('refuse %j', (value) => {
    expect(() => parseByteCount(value, 'Upload-Offset')).toThrow(malformed)
    expect(() => parseByteCount(value, 'Upload-Offset')).toThrow(/^Upload-Offset /)
  })
})

test('R12 Upload-Defer-Length: "Its value MUST be 1"', () => {
  expect(parseDeferLength('1')).toBe(true)
  for (const value of ['', '0', '2', '01', 'true', '1, 1'])
    expect(() => parseDeferLength(value)).toThrow(malformed)
})

test('R12 Upload-Concat is partial, or final and a list', () => {
  for (const value of ['partial', 'final;/a /b']) expect(parseConcat(value)).toBe(value)
  for (const value of ['', 'final', 'Partial', 'partial;'])
    expect(() => parseConcat(value)).toThrow(malformed)
})

describe('R11 Upload-Metadata', () => {
  test.each<[header: string, values: readonly (readonly [string, string])[]]>([
    ['filename YQ==', [['filename', 'a']]],
    [
      'filename d29ybGRfZG9taW5hdGlvbl9wbGFuLnBkZg==,is_confidential',
      [
        ['filename', 'world_domination_plan.pdf'],
        ['is_confidential', ''],
      ],
    ],
    ['name ', [['name', '']]],
    ['', []],
    [' ,\t, ', []],
    ['a YQ==,', [['a', 'a']]],
    [
      'a YQ==, b YQ== ,, \tc,',
      [
        ['a', 'a'],
        ['b', 'a'],
        ['c', ''],
      ],
    ],
    ['n w4Q=', [['n', 'Ä']]],
    [`b ${Buffer.from([0xff, 0xfe]).toString('base64')}`, [['b', '\ufffd\ufffd']]],
    [
      'a YWI=,A YWJj,x-y_z! +/+/',
      [
        ['a', 'ab'],
        ['A', 'abc'],
        ['x-y_z!', Buffer.from('+/+/', 'base64').toString()],
      ],
    ],
  ])('%j is parsed', (header, values) => {
    expect(parseMetadata(header)).toEqual({ header, values: new Map(values) })
  })

  test.each([
    ['has a key that is not ASCII', 'é YQ=='],
    ['repeats a key', 'a YQ==,a Yg=='],
    ['repeats a key without a value', 'a,a'],
    ['separates by two spaces', 'a  YQ=='],
    ['has two values', 'a YQ== YQ=='],
    ['has a value without padding', 'a YQ'],
    ['has a value with too much padding', 'a YQ===='],
    ['has padding alone', 'a ===='],
    ['has padding inside', 'a YQ==YQ=='],
    ['has a value in base64url', 'a -_-_'],
    ['has a value that is no Base64', 'a !!!!'],
    ['has a key that every object has', '__proto__ YQ=='],
    ['has another key that every object has', 'constructor YQ=='],
  ])('that %s is refused', (_, header) => {
    expect(() => parseMetadata(header)).toThrow(malformed)
  })
})

describe('R7 Upload-Checksum', () => {
  test.each(['sha1', 'sha256'] as const)(
    'of %s is parsed, and verified at the end of the bytes',
    async (algorithm) => {
      const digest = createHash(algorithm).update('abc').digest()
      const checksum = parseChecksum(`${algorithm} ${digest.toString('base64')}`)
      expect(checksum).toEqual({ algorithm, value: digest })
      const read = async (...texts: string[]) => {
        const received: string[] = []
        async function* source() {
          for (const text of texts) yield Buffer.from(text)
        }
        for await (const bytes of verifyChecksum(source(), checksum))
          received.push(Buffer.from(bytes).toString())
        return received
      }
      expect(await read('a', 'bc')).toEqual(['a', 'bc'])
      for (const other of ['', 'ab', 'abcd'])
        await expect(read(other)).rejects.toMatchObject({ code: 'checksum-mismatch' })
    },
  )

  test.each([
    '',
    'sha1',
    'sha1 ',
    ' sha1 AAAA',
    'md5 AAAA',
    'SHA1 AAAA',
    'toString AAAA',
    'sha1 AAAA',
    'sha1  AAAA',
  ])('%j is refused', (header) => {
    expect(() => parseChecksum(header)).toThrow(expect.objectContaining({ code: 'checksum-malformed' }))
  })
})

describe('the headers of a request', () => {
  test('are null where they are absent', () => {
    expect(parseUploadHeaders({ 'tus-resumable': '1.0.0' })).toEqual({
      checksum: null,
      offset: null,
      length: null,
      isLengthDeferred: false,
      metadata: null,
      concat: null,
    })
  })

  test('are parsed together', () => {
    expect(
      parseUploadHeaders({
        'upload-offset': '3',
        'upload-length': '9',
        'upload-metadata': 'a',
        'upload-concat': 'partial',
      }),
    ).toMatchObject({ offset: 3, length: 9, metadata: { header: 'a' }, concat: 'partial' })
    expect(parseUploadHeaders({ 'upload-defer-length': '1' }).isLengthDeferred).toBe(true)
  })

  test.each(['upload-offset', 'upload-length', 'upload-defer-length', 'upload-metadata', 'upload-concat'])(
    'are refused where %s is malformed',
    (name) => {
      expect(() => parseUploadHeaders({ [name]: 'a !' })).toThrow(malformed)
    },
  )
})
