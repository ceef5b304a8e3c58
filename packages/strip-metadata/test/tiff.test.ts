import { UnreadableFile } from '@mediabucket/strip-metadata'
import sharp from 'sharp'
import { expect, test } from 'vitest'
import { noise } from '../../../test/harness/pictures.ts'
import { secret, withoutMetadata } from './samples.ts'

type Tags = Readonly<Record<number, number | readonly number[]>>

const side = 32
const [width, height, bits, compression, colour, positions, samples, rows, lengths] = [
  ...[256, 257, 258, 259, 262, 273, 277, 278, 279],
] as const
const [planar, tileWidth, tileHeight, tilePositions, tileLengths, subsampling] = [
  ...[284, 322, 323, 324, 325, 530],
] as const

/** A TIFF file with these pixels at 8, a directory of numbers of four bytes, and a secret after each of them. */
function tiffOf(data: Buffer, tags: Tags): Buffer {
  const all: Tags = {
    [width]: side,
    [height]: side,
    [bits]: 8,
    [compression]: 1,
    [colour]: 1,
    [samples]: 1,
    ...tags,
  }
  const entries = Object.entries(all)
  const start = 8 + data.length + secret.length
  const directory = Buffer.alloc(2 + entries.length * 12 + 4)
  const lists: Buffer[] = []
  let end = start + directory.length
  directory.writeUInt16LE(entries.length)
  for (const [index, [tag, value]] of entries.entries()) {
    const numbers = [value].flat()
    const list = Buffer.alloc(numbers.length * 4)
    for (const [at, number] of numbers.entries()) list.writeUInt32LE(number, at * 4)
    const entry = 2 + index * 12
    directory.writeUInt16LE(Number(tag), entry)
    directory.writeUInt16LE(4, entry + 2)
    directory.writeUInt32LE(numbers.length, entry + 4)
    if (numbers.length === 1) list.copy(directory, entry + 8)
    else {
      directory.writeUInt32LE(end, entry + 8)
      lists.push(list)
      end += list.length
    }
  }
  const header = Buffer.from('II*\0\0\0\0\0', 'latin1')
  header.writeUInt32LE(start, 4)
  return Buffer.concat([header, data, Buffer.from(secret), directory, ...lists, Buffer.from(secret)])
}

const bytesOf = (length: number) => Buffer.from(Uint8Array.from({ length }, (_, at) => (at % 251) + 1))
const strips = (count: number) => Array.from({ length: count }, (_, at) => 8 + (at * side * side) / count)
const stripped = { [rows]: 4, [positions]: strips(8) }
const lengthsOf = (lengthOf: (strip: number) => number) => ({
  [lengths]: strips(8).map((_, at) => lengthOf(at)),
})

test.each<[what: string, pixels: number, tags: Tags]>([
  ['a strip of length 0', 1_024, { [positions]: 8, [lengths]: 0 }],
  ['a strip of half of its length', 1_024, { [positions]: 8, [lengths]: 512 }],
  ['a strip without a length', 1_024, { [positions]: 8 }],
  [
    'a first strip of half of its length',
    1_024,
    { ...stripped, ...lengthsOf((at) => (at === 0 ? 64 : 128)) },
  ],
  ['strips of length 0 between others', 1_024, { ...stripped, ...lengthsOf((at) => (at % 2) * 128) }],
  ['strips of length 1', 1_024, { ...stripped, ...lengthsOf(() => 1) }],
  ['fewer lengths than strips', 1_024, { ...stripped, [lengths]: [128, 128] }],
  [
    'planes of several strips',
    3_072,
    {
      [samples]: 3,
      [colour]: 2,
      [planar]: 2,
      [rows]: 16,
      [positions]: [0, 1, 2, 3, 4, 5].map((at) => 8 + at * 512),
    },
  ],
  ['rows of bits', 128, { [bits]: 1, [positions]: 8, [lengths]: 0 }],
  [
    'pixels that share their colours',
    1_536,
    { [samples]: 3, [colour]: 6, [subsampling]: [2, 2], [positions]: 8, [lengths]: 0 },
  ],
  [
    'tiles of length 0',
    1_024,
    { [tileWidth]: 16, [tileHeight]: 16, [tilePositions]: strips(4), [tileLengths]: [0, 0, 0, 0] },
  ],
])('X2 the pixels of a TIFF file with %s are kept', async (_what, length, tags) => {
  const pixels = bytesOf(length)
  const stored = await withoutMetadata(tiffOf(pixels, tags), 'image/tiff')
  expect(stored.subarray(8, 8 + length).equals(pixels)).toBe(true)
  expect(stored.includes(secret)).toBe(false)
})

test('X2 pixels that the file does not have need no bytes', async () => {
  const stored = await withoutMetadata(
    tiffOf(bytesOf(512), { [rows]: 16, [positions]: [8, 0], [lengths]: [512, 0] }),
    'image/tiff',
  )
  expect(stored.includes(secret)).toBe(false)
})

test('X4 compressed pixels of unknown length are refused', async () => {
  for (const tags of [{ [positions]: 8, [lengths]: 0 }, { [positions]: 8 }])
    await expect(
      withoutMetadata(tiffOf(bytesOf(100), { ...tags, [compression]: 5 }), 'image/tiff'),
    ).rejects.toBeInstanceOf(UnreadableFile)
  const whole = await noise(16).tiff({ compression: 'lzw' }).toBuffer()
  expect(
    await sharp(await withoutMetadata(whole, 'image/tiff'))
      .raw()
      .toBuffer(),
  ).toHaveLength(768)
})
