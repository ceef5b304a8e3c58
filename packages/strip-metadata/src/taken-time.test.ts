import { expect, test } from 'vitest'
import { createByteSource, createMemorySource } from './pieces.ts'
import { mayHaveTakenTime, readTakenTime } from './taken-time.ts'

const now = Date.UTC(2026, 10, 26)

const u16 = (value: number) => Buffer.of(value >> 8, value & 255)
const u32 = (value: number) => Buffer.concat([u16(value >>> 16), u16(value & 65_535)])
const at = (text: string) => Date.parse(`${text}Z`)

/** A TIFF structure whose Exif directory has these texts. */
function exifOf(texts: Readonly<Record<number, string>>): Buffer {
  const entries = Object.entries(texts)
  const data = 26 + 2 + entries.length * 12 + 4
  const values = entries.map(([, text]) => Buffer.from(`${text}\0`.padEnd(8, '\0')))
  let position = data
  const rows = entries.map(([tag, text], index) => {
    const row = Buffer.concat([u16(Number(tag)), u16(2), u32(text.length + 1), u32(position)])
    position += values[index]?.length ?? 0
    return row
  })
  return Buffer.concat([
    Buffer.from('MM\0*\0\0\0\x08', 'latin1'),
    ...[u16(1), u16(0x8769), u16(4), u32(1), u32(26), u32(0)],
    ...[u16(entries.length), ...rows, u32(0), ...values],
  ])
}

const original = (text: string) => exifOf({ 36867: text })

const xmpOf = (properties: string) =>
  Buffer.from(`http://ns.adobe.com/xap/1.0/\0<x:xmpmeta><rdf:Description ${properties}</x:xmpmeta>`, 'latin1')

/** A JPEG file with these application segments. */
const jpegOf = (...segments: readonly Buffer[]) =>
  Buffer.concat([
    Buffer.of(0xff, 0xd8),
    ...segments.flatMap((data) => [Buffer.of(0xff, 0xe1), u16(data.length + 2), data]),
    Buffer.from('ffda0008010100003f00', 'hex'),
  ])
const exifSegment = (block: Buffer) => Buffer.concat([Buffer.from('Exif\0\0'), block])

const box = (type: string, ...data: readonly Buffer[]) => {
  const content = Buffer.concat(data)
  return Buffer.concat([u32(content.length + 8), Buffer.from(type), content])
}
/** A movie whose header has this time in seconds since 1904. */
const movieOf = (seconds: number) =>
  Buffer.concat([
    box('ftyp', Buffer.from('isom')),
    box('moov', box('mvhd', u32(0), u32(seconds), Buffer.alloc(12))),
  ])
const since1904 = (text: string) => (at(text) - Date.UTC(1904, 0, 1)) / 1000

const clock = '2018:07:19 18:02:11'
const time = at('2018-07-19T18:02:11')

test.each([
  ['a time without an offset', original(clock), time, null],
  ['a time with an offset', exifOf({ 36867: clock, 36881: '+05:45' }), time, 345],
  ['a time west of Greenwich', exifOf({ 36867: clock, 36881: '-03:30' }), time, -210],
  ['an offset that no zone has', exifOf({ 36867: clock, 36881: '+25:00' }), time, null],
  ['an empty offset', exifOf({ 36867: clock, 36881: '   :  ' }), time, null],
  ['a fraction', exifOf({ 36867: clock, 37521: '1234' }), time + 123, null],
  ['the time of digitizing only', exifOf({ 36868: clock }), time, null],
  ['both times', exifOf({ 36867: clock, 36868: '2026:01:01 00:00:00' }), time, null],
  ['a picture of 1890', original('1890:05:01 12:00:00'), at('1890-05-01T12:00:00'), null],
  ['a leap day', original('2024:02:29 00:00:00'), at('2024-02-29T00:00:00'), null],
  ['an attribute of XMP', jpegOf(xmpOf('exif:DateTimeOriginal="2018-07-19T18:02:11+02:00"/>')), time, 120],
  ['an element of XMP', jpegOf(xmpOf('><xmp:CreateDate>2018-07-19T18:02:11Z</xmp:CreateDate>')), time, 0],
  ['a date of XMP', jpegOf(xmpOf('photoshop:DateCreated="2018-07-19"/>')), at('2018-07-19T00:00:00'), null],
  [
    'XMP before Exif',
    jpegOf(xmpOf('xmp:CreateDate="2020-01-01T00:00:00"/>'), exifSegment(original(clock))),
    time,
    null,
  ],
  [
    'an unset clock in Exif, and XMP',
    jpegOf(exifSegment(original('0000:00:00 00:00:00')), xmpOf('xmp:CreateDate="2018-07-19T18:02:11"/>')),
    time,
    null,
  ],
  ['damage after the time', jpegOf(exifSegment(original(clock))).subarray(0, -9), time, null],
  ['a movie', movieOf(since1904('2018-07-19T18:02:11')), time, 0],
])('M9 %s is read', async (_, file, expected, offset) => {
  expect(mayHaveTakenTime(file)).toBe(true)
  expect(await readTakenTime(createMemorySource(file), now)).toEqual({ time: expected, offset })
})

test.each([
  ['an unset clock', original('0000:00:00 00:00:00')],
  ['spaces', original('    :  :     :  :  ')],
  ['the zero of Unix', original('1970:01:01 00:00:00')],
  ['the zero of QuickTime', original('1904:01:01 00:00:00')],
  ['a day that does not exist', original('2023:02:29 10:00:00')],
  ['a month that does not exist', original('2018:13:01 10:00:00')],
  ['an hour that does not exist', original('2018:07:19 24:00:00')],
  ['a year before photography', original('1700:01:01 10:00:00')],
  ['the future', original('2026:11:28 00:00:00')],
  ['a text', original('yesterday')],
  ['a movie without a time', movieOf(0)],
  ['a movie of 1904', movieOf(5)],
  ['a movie with the zero of Unix', movieOf(2_082_844_800)],
  ['a movie of the future', movieOf(0xffffffff)],
  ['a header alone', Buffer.from('MM\0*\0\0\0\x08', 'latin1')],
  ['a directory that ends after the file', original(clock).subarray(0, 40)],
  [
    'too many entries',
    Buffer.concat([Buffer.from('MM\0*\0\0\0\x08\xff\xff', 'latin1'), Buffer.alloc(800_000)]),
  ],
  [
    'a directory that is its own Exif directory',
    Buffer.concat([
      Buffer.from('MM\0*\0\0\0\x08', 'latin1'),
      u16(1),
      u16(0x8769),
      u16(4),
      u32(1),
      u32(8),
      u32(0),
    ]),
  ],
  ['nothing', Buffer.alloc(0)],
  ['another format', Buffer.from('GIF89a')],
])('M9 %s is no time', async (_, file) => {
  expect(await readTakenTime(createMemorySource(file), now)).toBeNull()
})

/** A file of pictures with this many items of metadata, which are all the same bytes: a directory of 100 entries. */
function picturesOf(items: number): Buffer {
  const block = Buffer.concat([u32(0), Buffer.from('MM\0*\0\0\0\x08\0\x64', 'latin1'), Buffer.alloc(1_300)])
  const ids = Array.from({ length: items }, (_, index) => index + 1)
  const metaAt = (offset: number) =>
    box(
      'meta',
      u32(0),
      box('hdlr', u32(0), u32(0), Buffer.from('pict'), Buffer.alloc(13)),
      box(
        'iinf',
        u32(0),
        u16(items),
        ...ids.map((id) => box('infe', u32(0x02000000), u16(id), u16(0), Buffer.from('Exif\0'))),
      ),
      box(
        'iloc',
        u32(0),
        Buffer.of(0x44, 0),
        u16(items),
        ...ids.flatMap((id) => [u16(id), u16(0), u16(1), u32(offset), u32(block.length)]),
      ),
    )
  return Buffer.concat([box('ftyp'), metaAt(8 + metaAt(0).length + 8), box('mdat', block)])
}

/** Files of half a megabyte of the smallest parts. */
test.each([
  [
    'segments',
    Buffer.concat([
      Buffer.of(0xff, 0xd8),
      ...Array.from({ length: 130_000 }, () => Buffer.of(0xff, 0xe1, 0, 2)),
    ]),
  ],
  ['chunks of PNG', Buffer.concat([Buffer.from('\x89PNG\r\n\x1a\n', 'latin1'), Buffer.alloc(520_000)])],
  ['chunks of WebP', Buffer.concat([Buffer.from('RIFF\0\0\0\0WEBP'), Buffer.alloc(520_000)])],
  ['boxes', Buffer.concat([box('ftyp'), ...Array.from({ length: 65_000 }, () => box('free'))])],
  ['boxes in a movie', Buffer.concat([box('moov', ...Array.from({ length: 65_000 }, () => box('free')))])],
  ['items of metadata that are the same bytes', picturesOf(5_000)],
])('M9 of very many %s only some are visited', async (_, file) => {
  let reads = 0
  const source = createMemorySource(file)
  const counted = {
    ...source,
    read(position: number, length: number) {
      reads += 1
      return source.read(position, length)
    },
  }
  expect(await readTakenTime(counted, now)).toBeNull()
  expect(reads).toBeLessThan(20_000)
})

const chunk = (type: string, data: Buffer) =>
  Buffer.concat([u32(data.length), Buffer.from(type), data, u32(0)])
const itxt = (xmp: string) => chunk('iTXt', Buffer.from(`XML:com.adobe.xmp\0\0\0\0\0${xmp}`))
/** A PNG file of 5 MB with these chunks before and behind its pixels, which are in chunks of 8 kB as encoders write them. */
const pngOf = (before: readonly Buffer[], behind: readonly Buffer[]) =>
  Buffer.concat([
    Buffer.from('\x89PNG\r\n\x1a\n', 'latin1'),
    chunk('IHDR', Buffer.alloc(13)),
    ...before,
    ...Array.from({ length: 640 }, () => chunk('IDAT', Buffer.alloc(8_192))),
    ...behind,
    chunk('IEND', Buffer.alloc(0)),
  ])
const dated = 'exif:DateTimeOriginal="2018-07-19T18:02:11"/>'

test.each([
  ['no time', pngOf([], []), null],
  ['Exif before the pixels', pngOf([chunk('eXIf', original(clock))], []), time],
  ['Exif behind the pixels', pngOf([], [chunk('eXIf', original(clock))]), time],
  ['XMP before the pixels', pngOf([itxt(dated)], []), time],
  ['XMP behind other chunks', pngOf([], [chunk('tEXt', Buffer.alloc(9_000)), itxt(dated)]), time],
  [
    'pixels that look like Exif',
    pngOf([], [chunk('IDAT', Buffer.from('\0\0\x01\0eXIfMM\0*')), chunk('eXIf', original(clock))]),
    time,
  ],
  ['pixels that look like Exif, and no time', pngOf([], [chunk('IDAT', original(`${clock}eXIf`))]), null],
])('M9 a PNG file with %s is read in few parts', (_, file, expected) => expectFewFetches(file, expected))

test('M9 a JPEG file with a large segment before Exif is read in few parts', () =>
  expectFewFetches(
    Buffer.concat([jpegOf(Buffer.alloc(65_000), exifSegment(original(clock))), Buffer.alloc(5_000_000)]),
    time,
  ))

async function expectFewFetches(file: Buffer, expected: number | null) {
  let fetches = 0
  const source = createByteSource(
    file.length,
    async (position, length) => {
      fetches += 1
      return file.subarray(position, position + length)
    },
    262_144,
  )
  expect((await readTakenTime(source, now))?.time ?? null).toBe(expected)
  expect(fetches).toBeLessThanOrEqual(3)
}
