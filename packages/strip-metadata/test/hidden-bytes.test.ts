import { crc32 } from 'node:zlib'
import { UnreadableFile } from '@mediabucket/strip-metadata'
import sharp from 'sharp'
import { describe, expect, test } from 'vitest'
import { film } from '../../../test/harness/films.ts'
import { animation, noise } from '../../../test/harness/pictures.ts'
import { boxPaths, withBytesInBox } from './boxes.ts'
import { packetsOf, withoutMetadata } from './samples.ts'

/** Bytes that no file has by chance. */
const marker = Buffer.from('hidden-bytes-3f9a')

/** More than any chunk of a fixed size has. */
const longData = Buffer.concat([Buffer.alloc(800), marker])

/** A file with the marker at a place, which has a name. */
type Hidden = readonly [place: string, bytes: Buffer]

const u16 = (value: number) => Buffer.of(value >> 8, value & 255)
const u32 = (value: number) => Buffer.concat([u16(value >>> 16), u16(value & 0xffff)])
const little = (value: number) => u32(value).reverse()
const inserted = (bytes: Buffer, at: number, more: Buffer) =>
  Buffer.concat([bytes.subarray(0, at), more, bytes.subarray(at)])

/** At the end of each chunk, and each chunk once more with the marker as its data. Compressed pixels are streams of an encoder. */
function inPng(png: Buffer): Hidden[] {
  const hidden: Hidden[] = []
  const chunk = (type: string, data: Buffer) => {
    const named = Buffer.concat([Buffer.from(type), data])
    return Buffer.concat([u32(data.length), named, u32(crc32(named))])
  }
  for (let start = 8; start < png.length; ) {
    const [length, type] = [png.readUInt32BE(start), png.toString('latin1', start + 4, start + 8)]
    const end = start + 12 + length
    const data = png.subarray(start + 8, end - 4)
    const by = (bytes: Buffer) => Buffer.concat([png.subarray(0, start), bytes, png.subarray(end)])
    if (type !== 'IDAT' && type !== 'fdAT')
      hidden.push([`the end of ${type}`, by(chunk(type, Buffer.concat([data, marker])))])
    if (type === 'iCCP')
      hidden.push([
        `the name in ${type}`,
        by(chunk(type, Buffer.concat([marker, data.subarray(data.indexOf(0))]))),
      ])
    if (type !== 'IDAT') hidden.push([`another ${type}`, inserted(png, end, chunk(type, longData))])
    start = end
  }
  for (const type of [
    'PLTE',
    'tRNS',
    'hIST',
    'sBIT',
    'bKGD',
    'cHRM',
    'gAMA',
    'sRGB',
    'cICP',
    'mDCV',
    'cLLI',
    'pHYs',
    'fcTL',
    'fdAT',
    'iCCP',
  ])
    for (const at of [33, png.indexOf('IDAT') - 4, png.length - 12])
      hidden.push([
        `${type} at ${at === 33 ? 'the start' : at < png.length - 12 ? 'the pixels' : 'the end'}`,
        inserted(png, at, chunk(type, longData)),
      ])
  return hidden
}

/** At the end of each segment before and between the scans, and each segment once more. Compressed data is a stream of an encoder. */
function inJpeg(jpeg: Buffer): Hidden[] {
  const hidden: Hidden[] = []
  for (let start = 2; start < jpeg.length; ) {
    const type = jpeg.readUInt8(start + 1)
    if (type === 0xd9) break
    const end = start + 2 + jpeg.readUInt16BE(start + 2)
    const name = type.toString(16)
    const longer = Buffer.concat([
      jpeg.subarray(start, start + 2),
      u16(end - start - 2 + marker.length),
      jpeg.subarray(start + 4, end),
      marker,
    ])
    hidden.push([`the end of ${name}`, Buffer.concat([jpeg.subarray(0, start), longer, jpeg.subarray(end)])])
    if (type !== 0xda)
      hidden.push([
        `another ${name}`,
        inserted(jpeg, end, Buffer.concat([Buffer.of(0xff, type), u16(marker.length + 2), marker])),
      ])
    start = end
    if (type !== 0xda) continue
    while (
      !(
        jpeg[start] === 0xff &&
        jpeg[start + 1] !== 0 &&
        !((jpeg[start + 1] ?? 0) >= 0xd0 && (jpeg[start + 1] ?? 0) <= 0xd7)
      )
    )
      start += 1
  }
  for (const type of [0xc8, 0xcc, 0xdc, 0xdd, 0xde, 0xdf, 0xe0, 0xe2, 0xee, 0xf0])
    hidden.push([
      `${type.toString(16)} at the start`,
      inserted(jpeg, 2, Buffer.concat([Buffer.of(0xff, type), u16(marker.length + 2), marker])),
    ])
  return hidden
}

/** At the end of each chunk that is no stream of an encoder, and each chunk once more; also in frames. */
function inWebp(webp: Buffer): Hidden[] {
  const hidden: Hidden[] = []
  const padded = (bytes: Buffer) => Buffer.concat([bytes, Buffer.alloc(bytes.length % 2)])
  const chunk = (type: string, data: Buffer) =>
    Buffer.concat([Buffer.from(type), little(data.length), padded(data)])
  const whole = (body: Buffer) =>
    Buffer.concat([Buffer.from('RIFF'), little(body.length + 4), Buffer.from('WEBP'), body])
  const visit = (bytes: Buffer, first: number, wrap: (body: Buffer) => Buffer, path: string) => {
    for (let start = first; start + 8 <= bytes.length; ) {
      const [type, length] = [bytes.toString('latin1', start, start + 4), bytes.readUInt32LE(start + 4)]
      const data = bytes.subarray(start + 8, start + 8 + length)
      const end = start + 8 + length + (length % 2)
      const by = (other: Buffer) =>
        wrap(Buffer.concat([bytes.subarray(0, start), other, bytes.subarray(end)]))
      const place = `${path}${type}`
      if (!['VP8 ', 'VP8L', 'ALPH', 'ICCP'].includes(type))
        hidden.push([`the end of ${place}`, by(chunk(type, Buffer.concat([data, marker.subarray(0, 6)])))])
      hidden.push([`another ${place}`, by(Buffer.concat([bytes.subarray(start, end), chunk(type, marker)]))])
      if (type === 'ANMF') visit(data, 16, (body) => by(chunk(type, body)), `${place}/`)
      start = end
    }
  }
  visit(webp.subarray(12), 0, whole, '')
  for (const type of ['VP8 ', 'VP8L', 'ALPH', 'ANIM', 'ANMF', 'ICCP'])
    hidden.push([`${type} at the end`, whole(Buffer.concat([webp.subarray(12), chunk(type, marker)]))])
  return hidden
}

/** More values of each entry than it has, and bytes behind each strip. */
function inTiff(tiff: Buffer): Hidden[] {
  const sizes = [0, 1, 1, 2, 4, 8, 1, 1, 2, 4, 8, 4, 8]
  const hidden: Hidden[] = []
  for (let directory = tiff.readUInt32LE(4); directory > 0; ) {
    const count = tiff.readUInt16LE(directory)
    for (let nth = 0; nth < count; nth += 1) {
      const at = directory + 2 + nth * 12
      const [tag, type, values] = [
        tiff.readUInt16LE(at),
        tiff.readUInt16LE(at + 2),
        tiff.readUInt32LE(at + 4),
      ]
      const size = sizes[type] ?? 1
      // A profile, and the tables of a decoder.
      if (tag === 34675 || tag === 347) continue
      const start = values * size <= 4 ? at + 8 : tiff.readUInt32LE(at + 8)
      const longer = Buffer.concat([
        tiff,
        tiff.subarray(start, start + values * size),
        marker,
        Buffer.alloc(8),
      ])
      const changed = Buffer.from(longer)
      changed.writeUInt32LE(values + Math.floor((marker.length + 8) / size), at + 4)
      changed.writeUInt32LE(tiff.length, at + 8)
      hidden.push([`the values of ${tag}`, changed])
      if (tag !== 279 && tag !== 325) continue
      // The first strip or tile moves to the end, and has more bytes.
      const first = values === 1 ? at + 8 : tiff.readUInt32LE(at + 8)
      const length = type === 3 ? tiff.readUInt16LE(first) : tiff.readUInt32LE(first)
      const places = findEntry(tiff, directory, tag === 279 ? 273 : 324)
      const place = tiff.readUInt32LE(places + 4) === 1 ? places + 8 : tiff.readUInt32LE(places + 8)
      const position = tiff.readUInt32LE(place)
      const moved = Buffer.concat([tiff, tiff.subarray(position, position + length), marker])
      if (type === 3) moved.writeUInt16LE(length + marker.length, first)
      else moved.writeUInt32LE(length + marker.length, first)
      moved.writeUInt32LE(tiff.length, place)
      const compression = tiff.readUInt16LE(findEntry(tiff, directory, 259) + 8)
      if (compression === 1 || compression === 7) hidden.push([`behind a part by ${tag}`, moved])
    }
    directory = tiff.readUInt32LE(directory + 2 + count * 12)
  }
  return hidden
}

function findEntry(tiff: Buffer, directory: number, tag: number): number {
  for (let at = directory + 2; ; at += 12) if (tiff.readUInt16LE(at) === tag) return at
}

/** At the end of each box but those of data, of brands and of decoders. */
function inBoxes(bytes: Buffer): Hidden[] {
  return boxPaths(bytes)
    .filter(
      ({ name }) => !/(?:^|\/)(?:mdat|ftyp|styp|sidx|mfra|idat|auxC|[a-zA-Z0-9]{3}[CE]|esds)$/.test(name),
    )
    .map(({ path, name }) => [`the end of ${name}`, shifted(withBytesInBox(bytes, path, marker), bytes)])
}

/** The file with the positions of pictures that were moved by the marker. The table has numbers of four bytes, and one part of each picture. */
function shifted(changed: Buffer, original: Buffer): Buffer {
  const [at, data] = [changed.indexOf('iloc'), changed.indexOf('mdat')]
  if (at < 0 || data < at) return changed
  const [version, sizes, baseSize] = [changed[at + 4], changed[at + 8], (changed[at + 9] ?? 0) >> 4]
  expect([version, sizes, baseSize]).toEqual([expect.toBeOneOf([0, 1]), 0x44, expect.toBeOneOf([0, 4])])
  let position = at + 12
  for (let items = changed.readUInt16BE(at + 10); items > 0; items -= 1) {
    position += version === 0 ? 4 : 6
    const extent = position + baseSize + 2
    expect(changed.readUInt16BE(extent - 2)).toBe(1)
    const place = baseSize > 0 && changed.readUInt32BE(position) > 0 ? position : extent
    changed.writeUInt32BE(changed.readUInt32BE(place) + changed.length - original.length, place)
    position = extent + 8
  }
  return changed
}

const pictures: Readonly<
  Record<string, readonly [type: string, make: () => Promise<Buffer>, hide: (bytes: Buffer) => Hidden[]]>
> = {
  png: ['image/png', () => noise(24).withIccProfile('p3').png().toBuffer(), inPng],
  'png of a palette': ['image/png', () => noise(24).png({ palette: true, colours: 16 }).toBuffer(), inPng],
  'png of grey': ['image/png', () => noise(24).toColourspace('b-w').png().toBuffer(), inPng],
  'png with transparency': ['image/png', () => noise(24).ensureAlpha(0.5).png().toBuffer(), inPng],
  jpeg: ['image/jpeg', () => noise(24).withIccProfile('p3').jpeg().toBuffer(), inJpeg],
  'progressive jpeg': ['image/jpeg', () => noise(24).jpeg({ progressive: true }).toBuffer(), inJpeg],
  webp: ['image/webp', () => noise(24).withIccProfile('p3').webp().toBuffer(), inWebp],
  'lossless webp': [
    'image/webp',
    () => noise(24).ensureAlpha(0.5).webp({ lossless: true }).toBuffer(),
    inWebp,
  ],
  'webp with transparency': ['image/webp', () => noise(24).ensureAlpha(0.5).webp().toBuffer(), inWebp],
  'animated webp': ['image/webp', async () => (await animation(3)).webp({ loop: 0 }).toBuffer(), inWebp],
  tiff: ['image/tiff', () => noise(24).tiff({ compression: 'none' }).toBuffer(), inTiff],
  'tiff of jpeg': [
    'image/tiff',
    () => noise(64).tiff({ compression: 'jpeg', tile: true, tileWidth: 16, tileHeight: 16 }).toBuffer(),
    inTiff,
  ],
  'compressed tiff': [
    'image/tiff',
    () => noise(24).withIccProfile('p3').tiff({ compression: 'lzw' }).toBuffer(),
    inTiff,
  ],
}

const films: Readonly<Record<string, readonly string[]>> = {
  mp4: ['-frames:v', '4'],
  mov: ['-frames:v', '4', '-c:v', 'mjpeg'],
  m4v: ['-frames:v', '8', '-g', '4', '-f', 'mp4', '-movflags', 'frag_keyframe+empty_moov'],
}

const pixelsOf = async (bytes: Buffer) => {
  const { data, info } = await sharp(bytes, { failOn: 'none' }).raw().toBuffer({ resolveWithObject: true })
  return { ...info, data: data.toString('base64') }
}

describe('X2 bytes behind what a part of a file has are removed, or the file is refused:', () => {
  test.each(Object.entries(pictures))('%s', async (_, [type, make, hide]) => {
    const plain = await make()
    const shown = await pixelsOf(plain)
    const [found, changed]: [string[], string[]] = [[], []]
    const hidden = hide(plain)
    expect(hidden.length).toBeGreaterThan(5)
    for (const [place, sent] of hidden) {
      expect([place, sent.includes(marker.subarray(0, 6))]).toEqual([place, true])
      const stored = await cleaned(sent, type)
      if (stored === null) continue
      if (stored.includes(marker.subarray(0, 6))) found.push(place)
      // A decoder may refuse the file as it was sent; the service then refuses it too.
      const before = await pixelsOf(sent).catch(() => null)
      const after = await pixelsOf(stored).catch(() => null)
      if (
        before &&
        JSON.stringify(before) !== JSON.stringify(after) &&
        JSON.stringify(after) !== JSON.stringify(shown)
      )
        changed.push(place)
    }
    expect({ found, changed }).toEqual({ found: [], changed: [] })
  })

  test('boxes of a picture', async () => {
    const plain = await noise(24).withIccProfile('p3').avif({ effort: 0 }).toBuffer()
    const shown = await pixelsOf(plain)
    const [found, changed]: [string[], string[]] = [[], []]
    for (const [place, sent] of inBoxes(plain)) {
      const stored = await cleaned(sent, 'image/avif')
      if (stored?.includes(marker.subarray(0, 6))) found.push(place)
      if (stored && JSON.stringify(await pixelsOf(stored)) !== JSON.stringify(shown)) changed.push(place)
    }
    expect({ found, changed }).toEqual({ found: [], changed: [] })
  })

  test.each(Object.entries(films))('boxes of a film %s', async (extension, options) => {
    const plain = await film(extension, '32x32', options)
    const shown = await packetsOf(`a.${extension}`, plain)
    const [found, changed]: [string[], string[]] = [[], []]
    for (const [place, sent] of inBoxes(plain)) {
      const stored = await cleaned(sent, 'video/mp4')
      if (stored?.includes(marker.subarray(0, 6))) found.push(place)
      const packets = stored && (await packetsOf(`a.${extension}`, stored).catch(() => 'none'))
      if (
        packets &&
        packets !== shown &&
        packets !== (await packetsOf(`a.${extension}`, sent).catch(() => 'none'))
      )
        changed.push(place)
    }
    expect({ found, changed }).toEqual({ found: [], changed: [] })
  })
})

/** Null if the file is refused. */
const cleaned = (bytes: Buffer, type: string): Promise<Buffer | null> =>
  withoutMetadata(bytes, type).catch((error: unknown) => {
    if (error instanceof UnreadableFile) return null
    throw error
  })
