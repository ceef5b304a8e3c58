import { crc32 } from 'node:zlib'
import { UnreadableFile } from '@mediabucket/strip-metadata'
import sharp from 'sharp'
import { beforeAll, describe, expect, test } from 'vitest'
import { animation, noise } from '../../../test/harness/pictures.ts'
import { seededRandom } from '../../../test/harness/random.ts'
import { box, bytesOf } from './boxes.ts'
import { changedBy, needPrograms, packetsOf, secret, withoutMetadata } from './samples.ts'

const jpeg = () => noise(32).jpeg({ progressive: true }).toBuffer()
const pixelsOf = (bytes: Buffer) => sharp(bytes).raw().toBuffer()
const segment = (marker: number, text: string) =>
  Buffer.concat([Buffer.from([0xff, marker, 0, text.length + 2]), Buffer.from(text)])
const replaced = (bytes: Buffer, old: string, by: string): Buffer => {
  const at = bytes.indexOf(old, 0, 'latin1')
  if (at < 0) throw new Error(`no ${old}`)
  const changed = Buffer.from(bytes)
  changed.write(by, at, 'latin1')
  return changed
}
const refused = (bytes: Buffer, type: string) =>
  expect(withoutMetadata(bytes, type)).rejects.toBeInstanceOf(UnreadableFile)

describe('X2 hidden metadata', () => {
  test('in any segment of a JPEG file, between its scans and after its end is removed', async () => {
    const plain = await jpeg()
    const firstTable = plain.indexOf(Buffer.from([0xff, 0xdb]))
    const laterScan = plain.lastIndexOf(Buffer.from([0xff, 0xda]))
    const sent = Buffer.concat([
      plain.subarray(0, firstTable),
      ...[0xe0, 0xe1, 0xe2, 0xe3, 0xed, 0xef, 0xf3, 0xfe].map((marker) => segment(marker, `Exif ${secret}`)),
      // A marker may have more than one byte FF.
      Buffer.from([0xff, 0xff]),
      plain.subarray(firstTable, laterScan),
      segment(0xfe, secret),
      segment(0xe1, secret),
      plain.subarray(laterScan),
      box('ftyp', secret),
      Buffer.from(`MotionPhoto_Data${secret}`),
    ])
    const stored = await withoutMetadata(sent, 'image/jpeg')
    expect(stored.includes(secret)).toBe(false)
    expect((await pixelsOf(stored)).equals(await pixelsOf(plain))).toBe(true)
  })

  test('in the thumbnail of a JFIF segment and behind an Adobe segment is removed', async () => {
    const plain = await jpeg()
    const start = plain.indexOf(Buffer.from([0xff, 0xdb]))
    const sent = Buffer.concat([
      Buffer.from([0xff, 0xd8]),
      segment(0xe0, `JFIF\0\x01\x01\0\0\x01\0\x01\x01\x02${secret}`),
      segment(0xee, `Adobe\0\x64\0\0\0\0\x01${secret}`),
      plain.subarray(start),
    ])
    const stored = await withoutMetadata(sent, 'image/jpeg')
    expect(stored.includes(secret)).toBe(false)
    expect((await pixelsOf(stored)).equals(await pixelsOf(sent))).toBe(true)
  })

  test('in the last chunk of a PNG file is removed', async () => {
    const png = await noise(16).png().toBuffer()
    const end = Buffer.concat([Buffer.from([0, 0, 0, 6]), Buffer.from(`IEND${secret}crc!`)])
    const stored = await withoutMetadata(Buffer.concat([png.subarray(0, -12), end]), 'image/png')
    expect(stored.equals(png)).toBe(true)
  })

  test('of two Exif segments of a JPEG file, the orientation of the first one is kept', async () => {
    const plain = await jpeg()
    const exif = (orientation: number) =>
      segment(
        0xe1,
        `Exif\0\0MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0${String.fromCharCode(orientation)}\0\0\0\0\0\0`,
      )
    for (const [first, second] of [
      [6, 3],
      [1, 3],
    ] as const) {
      const sent = Buffer.concat([plain.subarray(0, 2), exif(first), exif(second), plain.subarray(2)])
      const { orientation } = await sharp(await withoutMetadata(sent, 'image/jpeg')).metadata()
      expect(orientation ?? 1).toBe(first)
    }
  })

  test.each([true, false])('orientations that are no SHORT are kept (big-endian: %s)', async (isBig) => {
    const block = (type: number) => {
      const bytes = Buffer.alloc(26)
      const write = (value: number, at: number, size: number) =>
        isBig ? bytes.writeUIntBE(value, at, size) : bytes.writeUIntLE(value, at, size)
      bytes.write(isBig ? 'MM' : 'II')
      for (const [value, at, size] of [
        [42, 2, 2],
        [8, 4, 4],
        [1, 8, 2],
        [0x112, 10, 2],
        [type, 12, 2],
        [1, 14, 4],
        [6, 18, type === 3 ? 2 : type === 1 ? 1 : 4],
      ] as const)
        write(value, at, size)
      return bytes
    }
    const chunk = (length: Buffer, type: string, data: Buffer, ...end: Buffer[]) =>
      Buffer.concat([length, Buffer.from(type), data, ...end])
    const [jpg, png] = [await jpeg(), await noise(16).png().toBuffer()]
    const webp = await noise(16)
      .withExif({ IFD0: { Make: secret } })
      .webp()
      .toBuffer()
    const exifAt = webp.indexOf('EXIF')
    for (const type of [1, 3, 4]) {
      const exif = block(type)
      const segmentOf = segment(0xe1, 'Exif\0\0')
      segmentOf.writeUInt16BE(8 + exif.length, 2)
      const crc = bytesOf([crc32(Buffer.concat([Buffer.from('eXIf'), exif])), 4])
      const sentWebp = Buffer.concat([
        webp.subarray(0, exifAt),
        chunk(Buffer.alloc(0), 'EXIF', Buffer.from([exif.length, 0, 0, 0]), exif),
      ])
      sentWebp.writeUInt32LE(sentWebp.length - 8, 4)
      for (const [format, bytes] of [
        ['jpeg', Buffer.concat([jpg.subarray(0, 2), segmentOf, exif, jpg.subarray(2)])],
        [
          'png',
          Buffer.concat([png.subarray(0, 33), chunk(bytesOf([26, 4]), 'eXIf', exif, crc), png.subarray(33)]),
        ],
        ['webp', sentWebp],
      ] as const) {
        const { orientation } = await sharp(await withoutMetadata(bytes, `image/${format}`)).metadata()
        expect([format, type, orientation]).toEqual([format, type, 6])
      }
    }
  })

  test('in unknown chunks of PNG and WebP files, in frames and after the end is removed', async () => {
    const png = await noise(16).png().toBuffer()
    const chunk = Buffer.concat([Buffer.from([0, 0, 0, 6]), Buffer.from(`prVt${secret}crc!`)])
    const sentPng = Buffer.concat([png.subarray(0, 33), chunk, png.subarray(33), Buffer.from(secret)])
    const storedPng = await withoutMetadata(sentPng, 'image/png')
    expect(storedPng.equals(png)).toBe(true)

    const webp = await (await animation(2)).webp({ loop: 0 }).toBuffer()
    const frame = webp.indexOf('ANMF')
    const size = webp.readUInt32LE(frame + 4)
    const extra = Buffer.from(`UNKN\x06\0\0\0${secret}`, 'latin1')
    const sentWebp = Buffer.concat([
      webp.subarray(0, frame + 8 + size),
      extra,
      webp.subarray(frame + 8 + size),
      Buffer.from(secret),
    ])
    sentWebp.writeUInt32LE(size + extra.length, frame + 4)
    sentWebp.writeUInt32LE(webp.readUInt32LE(4) + extra.length, 4)
    const storedWebp = await withoutMetadata(sentWebp, 'image/webp')
    expect(storedWebp.equals(webp)).toBe(true)
  })

  test('in the second of two Exif chunks of a PNG file is removed', async () => {
    const png = await noise(16).png().withMetadata({ orientation: 6 }).toBuffer()
    const start = png.indexOf('eXIf') - 4
    const end = start + 12 + png.readUInt32BE(start)
    const exif = png.subarray(start, end)
    const stored = await withoutMetadata(
      Buffer.concat([png.subarray(0, end), exif, png.subarray(end)]),
      'image/png',
    )
    expect(stored.toString('latin1').split('eXIf')).toHaveLength(2)
    expect((await sharp(stored).metadata()).orientation).toBe(6)
  })

  test('in the unused bytes of a TIFF file is removed', async () => {
    const tiff = await noise(16).tiff().toBuffer()
    const sent = Buffer.concat([tiff, Buffer.from(secret)])
    const stored = await withoutMetadata(sent, 'image/tiff')
    expect(stored.includes(secret)).toBe(false)
    expect((await pixelsOf(stored)).equals(await pixelsOf(tiff))).toBe(true)
  })
})

test('X2 chunks of a PNG file that decoders ignore because of their length are removed, and the next one of their type is kept', async () => {
  const png = await noise(16).withIccProfile('p3').png().toBuffer()
  const chunk = (type: string, data: Buffer) => {
    const named = Buffer.concat([Buffer.from(type), data])
    return Buffer.concat([bytesOf([data.length, 4]), named, bytesOf([crc32(named), 4])])
  }
  const lengths = { gAMA: 4, cHRM: 32, sRGB: 1, sBIT: 3, bKGD: 6, pHYs: 9, cICP: 4, mDCV: 24, cLLI: 8 }
  for (const [type, length] of Object.entries(lengths))
    for (const wrong of [0, length - 1, length + 1, length + secret.length]) {
      const bad = chunk(type, Buffer.from(secret.padStart(wrong, '.').slice(0, wrong)))
      const valid = chunk(type, Buffer.alloc(length, 1))
      const withChunks = (...chunks: Buffer[]) =>
        Buffer.concat([png.subarray(0, 33), ...chunks, png.subarray(33)])
      const stored = await withoutMetadata(withChunks(bad), 'image/png')
      expect([type, wrong, stored.includes(type)]).toEqual([type, wrong, png.includes(type)])
      expect((await pixelsOf(stored)).equals(await pixelsOf(png))).toBe(true)
      const both = await withoutMetadata(withChunks(bad, valid, valid), 'image/png')
      expect([type, wrong, both.indexOf(valid), both.lastIndexOf(valid)]).toEqual([type, wrong, 33, 33])
    }
})

test('X4 pixel information of a later version, which can contain a text, is refused', async () => {
  const avif = await noise(16).avif({ effort: 0 }).toBuffer()
  await withoutMetadata(avif, 'image/avif')
  const later = Buffer.from(avif)
  later.writeUInt8(1, avif.indexOf('pixi') + 7)
  await refused(later, 'image/avif')
})

describe('X4 files that cannot be parsed are refused', () => {
  test('JPEG, PNG, WebP and TIFF files that end too early or have another structure', async () => {
    const [jpg, png, webp, tiff] = await Promise.all([
      jpeg(),
      noise(16).png().toBuffer(),
      noise(16).webp().toBuffer(),
      noise(16).tiff().toBuffer(),
    ])
    await refused(jpg.subarray(0, 30), 'image/jpeg')
    await refused(Buffer.concat([jpg.subarray(0, 2), jpg.subarray(3)]), 'image/jpeg')
    await refused(png.subarray(0, -1), 'image/png')
    await refused(png.subarray(0, 40), 'image/png')
    await refused(webp.subarray(0, -4), 'image/webp')
    await refused(tiff.subarray(0, -10), 'image/tiff')
    await refused(replaced(tiff, 'II', 'XX'), 'image/tiff')
    for (const type of ['image/jpeg', 'image/png', 'image/webp', 'image/tiff', 'image/heic', 'video/mp4'])
      for (const bytes of [Buffer.alloc(0), Buffer.alloc(100), Buffer.from(secret)])
        await refused(bytes, type)
  })

  test('boxes without content, in endless numbers, and beyond their parents', async () => {
    const brand = box('ftyp', 'isom\0\0\0\0isom')
    await refused(brand, 'video/mp4')
    await refused(
      Buffer.concat([brand, box('moov', box('trak', Buffer.from([0, 0, 1, 0]), 'mdia'))]),
      'video/mp4',
    )
    await refused(Buffer.concat([brand, box('moov', box('cmov', 'x'))]), 'video/quicktime')
    await refused(Buffer.concat(Array.from({ length: 200_001 }, () => box('free'))), 'video/mp4')
  })
})

describe('X2 hidden metadata of videos', () => {
  beforeAll(needPrograms)

  const film = (...options: readonly string[]) =>
    changedBy('a.mp4', Buffer.alloc(0), 'ffmpeg', (path) => [
      ...[
        '-v',
        'error',
        '-y',
        '-f',
        'lavfi',
        '-i',
        'testsrc2=s=64x64:d=1:r=10',
        '-f',
        'lavfi',
        '-i',
        'sine=d=1',
      ],
      ...['-shortest', '-c:v', 'libx264', '-preset', 'ultrafast', '-c:a', 'aac', ...options, path],
    ])

  test('in unknown boxes, free space, between the samples and after the last box is removed', async () => {
    const plain = await film('-movflags', '+faststart')
    const item = plain.indexOf('mdat') - 4
    const data = plain.subarray(item + 8)
    // The samples stay at their positions, and more bytes follow them.
    const sent = Buffer.concat([
      plain.subarray(0, item),
      box('mdat', data, `freeGPS ${secret}`),
      ...['uuid', 'free', 'skip', 'udta', 'meta', 'sefd'].map((type) => box(type, secret)),
      Buffer.from(`${secret}, a trailer that is no box`),
    ])
    const stored = await withoutMetadata(sent, 'video/mp4')
    expect(stored.includes(secret)).toBe(false)
    expect(stored.length).toBe(item + 8 + data.length + `freeGPS ${secret}`.length)
    expect(await packetsOf('a.mp4', stored)).toBe(await packetsOf('a.mp4', plain))
  })

  test('in a track of timed metadata is removed with its samples', async () => {
    const plain = await film()
    // The samples of the sound are those of the metadata now.
    const sent = replaced(plain, 'soun', 'meta')
    const stored = await withoutMetadata(sent, 'video/mp4')
    const withoutSound = await changedBy('a.mp4', plain, 'sh', (path) => [
      ...['-c', 'ffmpeg -v error -i "$0" -map 0:v -c copy "$0.mp4" && mv "$0.mp4" "$0"', path],
    ])
    expect(await packetsOf('a.mp4', stored)).toBe(await packetsOf('a.mp4', withoutSound))
    expect(stored.includes('meta')).toBe(false)
    const zeros = (bytes: Buffer) => bytes.reduce((count, byte) => count + Number(byte === 0), 0)
    expect(zeros(stored) - zeros(sent)).toBeGreaterThan(5_000)
    await refused(replaced(await film('-movflags', 'frag_keyframe+empty_moov'), 'soun', 'meta'), 'video/mp4')
  })

  test('X4 whose samples are in other files or outside of the data is refused', async () => {
    const plain = await film()
    const reference = plain.indexOf('url ')
    const external = Buffer.from(plain)
    external[reference + 7] = 0
    await refused(external, 'video/mp4')
    await refused(replaced(plain, 'mdat', 'free'), 'video/mp4')
  })

  test('X4 damaged in any place is refused or stored, and never causes another error', async () => {
    const random = seededRandom()
    const samples = [
      ['video/mp4', await film()],
      [
        'image/avif',
        await noise(16)
          .withExif({ IFD0: { Make: secret } })
          .avif({ effort: 0 })
          .toBuffer(),
      ],
      ['image/tiff', await noise(16).tiff().toBuffer()],
      [
        'image/webp',
        await noise(16)
          .withExif({ IFD0: { Make: secret } })
          .webp()
          .toBuffer(),
      ],
      ['image/png', await noise(16).png().toBuffer()],
      ['image/jpeg', await jpeg()],
    ] as const
    let refusals = 0
    for (const [type, bytes] of samples)
      for (let round = 0; round < 150; round += 1) {
        const changed = Buffer.from(bytes)
        for (let change = 0; change < 3; change += 1) changed[random(changed.length)] = random(256)
        try {
          await withoutMetadata(changed, type)
        } catch (error) {
          if (!(error instanceof UnreadableFile)) expect(error).toBeInstanceOf(RangeError)
          refusals += 1
        }
      }
    expect(refusals).toBeGreaterThan(10)
  })
})
