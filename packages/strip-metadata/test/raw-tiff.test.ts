import { isRawExtension, UnreadableFile } from '@mediabucket/strip-metadata'
import { describe, expect, test } from 'vitest'
import { secret, withoutMetadata } from './samples.ts'

type Tag = readonly [tag: number, type: 2 | 3 | 4, value: number, count?: number]

const pixels: readonly Tag[] = [
  ...([
    [256, 3, 1],
    [257, 3, 1],
    [258, 3, 8],
  ] as const),
  ...([
    [273, 4, 300],
    [277, 3, 1],
    [278, 3, 1],
    [279, 4, 1],
  ] as const),
]
const colour = (value: number): Tag => [262, 3, value]
const compression = (value: number): Tag => [259, 3, value]
const plain = [...pixels, compression(1), colour(1)]

function directory(tags: readonly Tag[], next = 0): Buffer {
  const bytes = Buffer.alloc(2 + tags.length * 12 + 4)
  bytes.writeUInt16LE(tags.length)
  for (const [at, [tag, type, value, count = 1]] of tags
    .toSorted(([one], [other]) => one - other)
    .entries()) {
    bytes.writeUInt16LE(tag, 2 + at * 12)
    bytes.writeUInt16LE(type, 4 + at * 12)
    bytes.writeUInt32LE(count, 6 + at * 12)
    bytes.writeUInt32LE(value, 10 + at * 12)
  }
  bytes.writeUInt32LE(next, 2 + tags.length * 12)
  return bytes
}

/** A file with a directory at 16, and another one at 160; maker notes are at the end. */
function tiff(
  first: readonly Tag[],
  second: readonly Tag[] = [],
  { next = 0, mark = '\0\0\0\0' } = {},
): Buffer {
  const bytes = Buffer.alloc(301)
  bytes.write('II*\0\x10\0\0\0', 'latin1')
  bytes.write(mark, 8, 'latin1')
  directory(first, next).copy(bytes, 16)
  if (second.length > 0) directory(second).copy(bytes, 160)
  return Buffer.concat([bytes, Buffer.from(secret)])
}

const raw: readonly (readonly [what: string, bytes: Buffer])[] = [
  ['the colours of a filter', tiff([...pixels, compression(1), colour(32803)])],
  ['linear colours', tiff([...pixels, compression(1), colour(34892)])],
  ['a filter in a directory within one', tiff([...plain, [330, 4, 160]], [...pixels, colour(32803)])],
  ['a filter in the next directory', tiff(plain, [...pixels, colour(32803)], { next: 160 })],
  ['the mark IIII', tiff(plain, [], { mark: 'IIII' })],
  ['the mark MMMM', tiff(plain, [], { mark: 'MMMM' })],
  ['a version of DNG', tiff([...plain, [50706, 4, 0x0401]])],
  ...[262, 32767, 32769, 32770, 32772, 32867, 34713, 34892, 52546, 65000, 65535].map(
    (value) => [`the compression ${value}`, tiff([...pixels, compression(value), colour(1)])] as const,
  ),
]

describe('X3 a file with the structure of TIFF is stored as it is sent', () => {
  test.each(raw)('if it has %s', async (_, bytes) => {
    expect((await withoutMetadata(bytes, 'image/tiff')).equals(bytes)).toBe(true)
  })

  test('RAW files are known by their names', () => {
    expect(['iiq', '3FR', 'mef', 'pef', 'nef'].every(isRawExtension)).toBe(true)
  })
})

test('X2 a file without these marks is no RAW file', async () => {
  const stored = await withoutMetadata(tiff(plain), 'image/tiff')
  expect(stored.includes(secret)).toBe(false)
})

test('X2 a TIFF file that is taken for a RAW file by its tags alone loses its metadata', async () => {
  // The tag of PrintIM, which the cameras of many makers write.
  const sent = tiff([...plain, [50341, 4, 1]])
  expect((await withoutMetadata(sent, 'image/x-sony-arw')).includes(secret)).toBe(false)
})

test('X4 directories that overlap cannot need much memory', async () => {
  const bytes = tiff([...pixels, colour(1)], [...pixels, colour(1)], { next: 20 })
  await expect(withoutMetadata(bytes, 'image/tiff')).rejects.toBeInstanceOf(UnreadableFile)
})

test('X4 a million strips are refused', async () => {
  const count = 1_000_001
  const bytes = Buffer.concat([tiff(plain), Buffer.alloc(count * 4)])
  const entryOf = (tag: number) => 18 + 12 * [256, 257, 258, 259, 262, 273, 277, 278, 279].indexOf(tag)
  // The height, in strips of one row.
  for (const [tag, value] of [
    [257, count],
    [278, 1],
  ] as const) {
    bytes.writeUInt16LE(4, entryOf(tag) + 2)
    bytes.writeUInt32LE(value, entryOf(tag) + 8)
  }
  // The positions, and the lengths.
  for (const tag of [273, 279]) {
    bytes.writeUInt32LE(count, entryOf(tag) + 4)
    bytes.writeUInt32LE(307, entryOf(tag) + 8)
  }
  await expect(withoutMetadata(bytes, 'image/tiff')).rejects.toThrow('too many numbers')
})

test('X4 a TIFF file of ImageJ with pictures that have no directories is refused', async () => {
  const stack = (pictures: number) => {
    const text = `ImageJ=1.54f\nimages=${pictures}\nslices=${pictures}\n\0`
    const description: Tag = [270, 2, 301 + secret.length, text.length]
    const next = [...pixels, compression(1), colour(1)]
    return Buffer.concat([tiff([...plain, description], next, { next: 160 }), Buffer.from(text)])
  }
  await expect(withoutMetadata(stack(2), 'image/tiff')).resolves.toBeInstanceOf(Buffer)
  await expect(withoutMetadata(stack(3), 'image/tiff')).rejects.toBeInstanceOf(UnreadableFile)
})
