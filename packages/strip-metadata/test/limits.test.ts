import {
  createByteSource,
  type Piece,
  planRemoval,
  requireBounded,
  UnreadableFile,
} from '@mediabucket/strip-metadata'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { chunksOf } from '../src/movie.ts'
import { box, bytesOf } from './boxes.ts'

afterEach(() => void vi.restoreAllMocks())

const plan = async (bytes: Buffer, type: string) => {
  const source = createByteSource(bytes.length, async (at, length) => bytes.subarray(at, at + length), 1e6)
  return (await planRemoval(source, type)).pieces
}

const megabyte = 1024 * 1024

/** A HEIC file with a picture of one byte, and an Exif item with these extents in the data. */
function heic(extents: readonly { readonly at: number; readonly length: number }[], size: number): Buffer {
  const brand = box('ftyp', 'heic\0\0\0\0heic')
  const entry = (id: number, kind: string) =>
    box('infe', bytesOf([0x0200_0000, 4], [id, 2], [0, 2]), kind, '\0')
  const pictures = (data: number) =>
    box(
      'meta',
      bytesOf([0, 4]),
      box('hdlr', bytesOf([0, 4], [0, 4]), 'pict', Buffer.alloc(13)),
      box('iinf', bytesOf([0, 4], [2, 2]), entry(1, 'hvc1'), entry(2, 'Exif')),
      box(
        'iloc',
        bytesOf([0, 4], [0x4400, 2], [2, 2], [1, 2], [0, 2], [1, 2], [data, 4], [1, 4]),
        bytesOf([2, 2], [0, 2], [extents.length, 2]),
        ...extents.map(({ at, length }) => bytesOf([data + 1 + at, 4], [length, 4])),
      ),
    )
  const data = brand.length + pictures(0).length + 8
  return Buffer.concat([brand, pictures(data), box('mdat', Buffer.alloc(1 + size, 'x'))])
}

describe('X4 a small file cannot need much memory', () => {
  test('with overlapping parts of metadata', async () => {
    const sent = heic(
      Array.from({ length: 1_000 }, () => ({ at: 0, length: megabyte })),
      megabyte,
    )
    const alloc = vi.spyOn(Buffer, 'alloc')
    await expect(plan(sent, 'image/heic')).rejects.toBeInstanceOf(UnreadableFile)
    const allocated = alloc.mock.calls.reduce((sum, [size]) => sum + size, 0)
    expect(allocated).toBeLessThan(megabyte)
  })

  test('with a large part of metadata, which is zeros in the plan', async () => {
    const pieces = await plan(heic([{ at: 0, length: 5 * megabyte }], 5 * megabyte), 'image/heic')
    const literals = pieces.reduce((sum, piece) => sum + ('bytes' in piece ? piece.bytes.byteLength : 0), 0)
    expect(literals).toBeLessThan(1_000)
    expect(pieces.some((piece) => 'zeros' in piece && piece.zeros > 5 * megabyte - 100)).toBe(true)
  })

  test('with a table of chunks of more than a million entries', () => {
    const chunks = (count: number) => {
      const bytes = box(
        'stbl',
        box('stco', bytesOf([0, 4], [count, 4]), Buffer.alloc(count * 4)),
        box('stsc', bytesOf([0, 4], [1, 4], [1, 4], [1, 4], [1, 4])),
        box('stsz', bytesOf([0, 4], [0, 4], [count, 4]), Buffer.alloc(count * 4)),
      )
      const table = { type: 'stbl', start: 0, data: 8, end: bytes.length }
      return chunksOf({ bytes, base: 0 }, table, true)
    }
    expect(chunks(1_000)).toHaveLength(1_000)
    expect(() => chunks(1_000_001)).toThrow(UnreadableFile)
  })
})

test.each<[what: string, tables: readonly (readonly [type: string, numbers: readonly number[]])[]]>([
  ['chunks before the first one of the table', [['stsc', [1, 2, 1, 1]]]],
  ['chunks that are not in order', [['stsc', [2, 1, 1, 1, 1, 1, 1]]]],
  ['chunks without samples', [['stsc', [1, 1, 0, 1]]]],
  ['no samples', [['stsc', [0]]]],
  ['two tables of positions', [['stco', [1, 100]]]],
  ['positions in two forms', [['co64', [1, 0, 100]]]],
])('X4 a table with %s is refused, because decoders repair it, each in its own way', (_what, added) => {
  const tables: readonly (readonly [type: string, numbers: readonly number[]])[] = [
    ['stco', [1, 100]],
    ['stsz', [0, 1, 7]],
  ]
  const all = [...tables, ...added, ...(added[0]?.[0] === 'stsc' ? [] : [['stsc', [1, 1, 1, 1]] as const])]
  const boxes = all.map(([type, numbers]) =>
    box(type, bytesOf([0, 4], ...numbers.map((number) => [number, 4] as const))),
  )
  const bytes = box('stbl', ...boxes)
  const table = { type: 'stbl', start: 0, data: 8, end: bytes.length }
  expect(() => chunksOf({ bytes, base: 0 }, table, true)).toThrow(UnreadableFile)
})

test('X2 a video with 49,000 boxes of data, each with a frame and another byte, is planned in linear time', async () => {
  const count = 49_000
  const brand = box('ftyp', 'isom\0\0\0\0isom')
  const numbers = (of: (at: number) => number) =>
    Array.from({ length: count }, (_, at) => [of(at), 4] as const)
  const table = (first: number) =>
    box(
      'stbl',
      box('stsd', bytesOf([0, 4], [1, 4]), box('avc1', Buffer.alloc(78))),
      box('stco', bytesOf([0, 4], [count, 4], ...numbers((at) => first + at * 10))),
      box('stsc', bytesOf([0, 4], [1, 4], [1, 4], [1, 4], [1, 4])),
      box('stsz', bytesOf([0, 4], [0, 4], [count, 4], ...numbers(() => 1))),
    )
  const movie = (first: number) =>
    box(
      'moov',
      box(
        'trak',
        box('tkhd', Buffer.alloc(84)),
        box(
          'mdia',
          box('hdlr', bytesOf([0, 4], [0, 4]), 'vide', Buffer.alloc(13)),
          box('minf', table(first)),
        ),
      ),
    )
  const first = brand.length + movie(0).length + 8
  const data = box('mdat', 'fx')
  const sent = Buffer.concat([brand, movie(first), ...Array<Buffer>(count).fill(data)])
  const sorted = vi.spyOn(Array.prototype, 'toSorted')
  const pieces = await plan(sent, 'video/mp4')
  expect(pieces).toHaveLength(2 * count)
  expect(pieces.at(-1)).toEqual({ zeros: 1 })
  const sortedLength = sorted.mock.contexts.reduce<number>(
    (sum, list) => sum + (Array.isArray(list) ? list.length : 0),
    0,
  )
  expect(sortedLength).toBeLessThan(10 * count)
})

describe('X4 the plan for a file is bounded', () => {
  test('in its parts', async () => {
    const parts = (count: number) =>
      Buffer.concat([
        Buffer.from('ffd8', 'hex'),
        Buffer.from('ffdc00040001fffe0002'.repeat(count), 'hex'),
        Buffer.from('ffc0000b080001000101011100ffda0008010100003f00ffd9', 'hex'),
      ])
    expect((await plan(parts(1_000), 'image/jpeg')).length).toBe(1_001)
    await expect(plan(parts(100_001), 'image/jpeg')).rejects.toBeInstanceOf(UnreadableFile)
  })

  test('in its bytes, its length and its positions, also if the process that made it is not to be trusted', () => {
    const plans: readonly Piece[][] = [
      [{ bytes: new Uint8Array(8 * megabyte + 1) }],
      [{ zeros: 1e12 }],
      [{ zeros: -1 }],
      [{ zeros: Number.NaN }],
      [{ from: 0, to: 101 }],
      [{ from: -1, to: 5 }],
      Array.from({ length: 100_001 }, () => ({ zeros: 0 })),
    ]
    expect(() =>
      requireBounded([{ from: 0, to: 100 }, { bytes: new Uint8Array(megabyte) }], 100),
    ).not.toThrow()
    for (const pieces of plans) expect(() => requireBounded(pieces, 100)).toThrow(UnreadableFile)
  })
})
