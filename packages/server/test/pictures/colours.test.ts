import { crc32, deflateSync } from 'node:zlib'
import sharp from 'sharp'
import { rgbaToThumbHash, thumbHashToAverageRGBA } from 'thumbhash'
import { afterAll, describe, expect, test } from 'vitest'
import { seededRandom } from '../../../../test/harness/random.ts'
import { PictureWorkers } from '../../src/pictures/picture-workers.ts'
import { colourSpaces, greyInSrgb, iccProfile, inSrgb } from './icc-profile.ts'

const limits = { workers: 1, queue: 10, queueTimeout: 60_000, timeout: 60_000, memory: 1e9, niceness: 0 }
const workers = new PictureWorkers(limits)
afterAll(() => workers.close())

const unknown = { thumbhash: null, width: null, height: null }
type Recorded = { thumbhash: Uint8Array | null; width: number | null; height: number | null }

async function rendered(
  picture: Uint8Array,
  recorded: Recorded = unknown,
  fit: 'contain' | 'cover' = 'contain',
) {
  const form = { width: 40, height: 30, fit, format: 'webp' } as const
  const task = { type: 'resize', picture, form, maxPixels: 1e6, recorded, extraction: null } as const
  const result = await workers.run(task, 'bucket')
  if (result.outcome !== 'resized') return result.outcome
  const { data, info } = await sharp(result.bytes).ensureAlpha().raw().toBuffer({ resolveWithObject: true })
  const at = (x: number, y: number) => [...data.subarray((y * info.width + x) * 4).subarray(0, 4)]
  return { preview: result.preview, at, last: at(info.width - 1, info.height - 1) }
}

/** A PNG of one colour, whose samples have 8 or 16 bits. */
function png(depth: 8 | 16, colour: readonly number[], profile: Buffer | null): Buffer {
  const [width, height] = [40, 30]
  const chunk = (type: string, data: Buffer) => {
    const named = Buffer.concat([Buffer.from(type), data])
    const [length, sum] = [Buffer.alloc(4), Buffer.alloc(4)]
    length.writeUInt32BE(data.length)
    sum.writeUInt32BE(crc32(named))
    return Buffer.concat([length, named, sum])
  }
  const header = Buffer.alloc(13)
  header.writeUInt32BE(width)
  header.writeUInt32BE(height, 4)
  header.set([depth, [0, 4, 2, 6][colour.length - 1] ?? 2], 8)
  const pixel = Buffer.concat(colour.map((value) => Buffer.alloc(depth / 8, value)))
  const row = Buffer.concat([Buffer.of(0), ...Array.from({ length: width }, () => pixel)])
  return Buffer.concat([
    Buffer.from('\x89PNG\r\n\x1a\n', 'latin1'),
    chunk('IHDR', header),
    ...(profile ? [chunk('iCCP', Buffer.concat([Buffer.from('x\0\0'), deflateSync(profile)]))] : []),
    chunk('IDAT', deflateSync(Buffer.concat(Array.from({ length: height }, () => row)))),
    chunk('IEND', Buffer.alloc(0)),
  ])
}

/** An uncompressed TIFF of one colour, whose samples have 16 bits. */
function tiff(colour: readonly number[], profile: Buffer | null): Buffer {
  const [width, height] = [40, 30]
  const pixels = Buffer.concat(
    Array.from({ length: width * height }, () => Buffer.from(colour.flatMap((value) => [value, value]))),
  )
  const bits = Buffer.alloc(6)
  for (const at of [0, 2, 4]) bits.writeUInt16LE(16, at)
  const [bitsAt, profileAt] = [8 + pixels.length, 8 + pixels.length + bits.length]
  const isGrey = colour.length === 1
  const rows: readonly (readonly [tag: number, type: number, count: number, value: number])[] = [
    [256, 4, 1, width],
    [257, 4, 1, height],
    isGrey ? [258, 3, 1, 16] : [258, 3, 3, bitsAt],
    [259, 3, 1, 1],
    [262, 3, 1, isGrey ? 1 : 2],
    [273, 4, 1, 8],
    [277, 3, 1, colour.length],
    [278, 4, 1, height],
    [279, 4, 1, pixels.length],
    ...(profile ? [[34675, 7, profile.length, profileAt] as const] : []),
  ]
  const directory = Buffer.alloc(2 + rows.length * 12 + 4)
  directory.writeUInt16LE(rows.length)
  for (const [index, [tag, type, count, value]] of rows.entries()) {
    const at = 2 + index * 12
    directory.writeUInt16LE(tag, at)
    directory.writeUInt16LE(type, at + 2)
    directory.writeUInt32LE(count, at + 4)
    directory.writeUInt32LE(value, at + 8)
  }
  const header = Buffer.from('II*\0\0\0\0\0', 'latin1')
  header.writeUInt32LE(profileAt + (profile?.length ?? 0), 4)
  return Buffer.concat([header, pixels, bits, profile ?? Buffer.alloc(0), directory])
}

type Encode = (colour: readonly number[], profile: Buffer | null) => Buffer | Promise<Buffer>

const avif =
  (bitdepth: 8 | 10 | 12): Encode =>
  (colour, profile) =>
    sharp(png(16, colour, profile))
      .toColourspace('rgb16')
      .keepIccProfile()
      .avif({ bitdepth, quality: 95, chromaSubsampling: '4:4:4', effort: 0 })
      .toBuffer()

const forms: Readonly<Record<string, Encode>> = {
  'PNG of 8 bits': (...given) => png(8, ...given),
  'PNG of 16 bits': (...given) => png(16, ...given),
  'TIFF of 16 bits': tiff,
  'AVIF of 8 bits': avif(8),
  'AVIF of 10 bits': avif(10),
  'AVIF of 12 bits': avif(12),
}

/** What the lossy formats differ by, of 255. Adobe RGB makes the steps of 8 bits larger. */
const tolerance = 6
const toleranceOf8Bits = 12
const isClose = (one: readonly number[], other: readonly number[], limit = tolerance) =>
  other.every((value, index) => Math.abs(value - (one[index] ?? 0)) <= limit)

describe('V2 colours are those of the profile, whatever the depth of the picture is:', () => {
  const colours = 8
  const choose = seededRandom()

  test.each(
    Object.entries(forms).flatMap(([name, encode]) =>
      [null, ...Object.keys(colourSpaces)].map((space) => ({ name, encode, space })),
    ),
  )('$name with $space', async ({ name, encode, space }) => {
    const wrong: unknown[] = []
    const form = space === null ? null : (colourSpaces[space] ?? null)
    for (let index = 0; index < colours; index += 1) {
      const alpha = index % 3 === 0 && name.startsWith('PNG') ? [128 + choose(128)] : []
      const colour = [choose(256), choose(256), choose(256)]
      const sent = await encode([...colour, ...alpha], form && iccProfile(form))
      const expected = form === null ? colour : inSrgb(colour, form)
      for (const fit of ['contain', 'cover'] as const) {
        const found = await rendered(sent, unknown, fit)
        if (typeof found === 'string') throw new Error(found)
        const hash = found.preview?.thumbhash
        const { r, g, b } = thumbHashToAverageRGBA(hash ?? new Uint8Array(5))
        const average = [r * 255, g * 255, b * 255]
        // The placeholder of a transparent picture is less exact.
        const isSame =
          isClose(found.at(20, 15), expected, name === 'AVIF of 8 bits' ? toleranceOf8Bits : tolerance) &&
          (alpha.length > 0 || average.every((value, at) => Math.abs(value - (expected[at] ?? 0)) < 20))
        if (!isSame) wrong.push({ fit, colour, alpha, expected, found: found.at(20, 15), average })
      }
    }
    expect(wrong).toEqual([])
  })

  test.each(
    Object.entries(forms)
      .filter(([name]) => !name.startsWith('AVIF'))
      .flatMap(([name, encode]) => [null, 1.8].map((gamma) => ({ name, encode, gamma }))),
  )('grey $name with the curve $gamma', async ({ encode, gamma }) => {
    const wrong: unknown[] = []
    for (let index = 0; index < colours; index += 1) {
      const value = choose(256)
      const sent = await encode([value], gamma === null ? null : iccProfile(gamma))
      const found = await rendered(sent)
      if (typeof found === 'string') throw new Error(found)
      const expected = gamma === null ? value : greyInSrgb(value, gamma)
      if (!isClose(found.at(20, 15), [expected, expected, expected]))
        wrong.push({ value, expected, found: found.at(20, 15) })
    }
    expect(wrong).toEqual([])
  })

  test('CMYK is converted as before', async () => {
    const sent = await sharp(png(8, [200, 40, 40], null))
      .toColourspace('cmyk')
      .tiff()
      .toBuffer()
    const { data } = await sharp(sent).raw().toBuffer({ resolveWithObject: true })
    const found = await rendered(sent)
    if (typeof found === 'string') throw new Error(found)
    expect(isClose(found.at(20, 15), [...data.subarray(0, 3)])).toBe(true)
  })
})

test('V13 a placeholder of wrong colours, which a development version has recorded, is corrected once', async () => {
  const space = colourSpaces['Display P3']
  if (!space) throw new Error('no colour space')
  const picture = png(16, [200, 40, 40], iccProfile(space))
  const hashOf = (colour: readonly number[]) =>
    rgbaToThumbHash(40, 30, Buffer.from(Array.from({ length: 40 * 30 }, () => [...colour, 255]).flat()))
  // The numbers of Display P3.
  const recorded = { thumbhash: hashOf([202, 35, 34]), width: 40, height: 30 }
  const first = await rendered(picture, recorded)
  if (typeof first === 'string') throw new Error(first)
  expect(first.preview).toMatchObject({ isCorrection: true, width: 40, height: 30 })
  const next = await rendered(picture, { ...recorded, thumbhash: first.preview?.thumbhash ?? null })
  expect(next).toMatchObject({ preview: null })
  // Of 8 bits it was right.
  expect(await rendered(png(8, [200, 40, 40], iccProfile(space)), recorded)).toMatchObject({ preview: null })
})
