import { expect, test } from 'vitest'
import { createByteSource, createMemorySource } from './pieces.ts'
import { mayHaveTakenTime, readTakenTime } from './taken-time.ts'
import { parseTimeText } from './time-text.ts'

const now = Date.UTC(2026, 10, 26)

const u16 = (value: number) => Buffer.of(value >> 8, value & 255)
const u32 = (value: number) => Buffer.concat([u16(value >>> 16), u16(value & 65_535)])
const at = (text: string) => Date.parse(`${text}Z`)

type Texts = Readonly<Record<number, string>>

/** A TIFF structure whose Exif directory, and whose first one, have these texts. */
function exifOf(exif: Texts, first: Texts = {}, xmp?: string | Buffer): Buffer {
  const firstRows = Object.keys(first).length + 1 + (xmp === undefined ? 0 : 1)
  const start = 8 + 2 + firstRows * 12 + 4
  let position = start + 2 + Object.keys(exif).length * 12 + 4
  const values: Buffer[] = []
  const row = (tag: number, type: number, value: Buffer) => {
    const at = position
    values.push(value)
    position += value.length
    return Buffer.concat([u16(tag), u16(type), u32(value.length), u32(at)])
  }
  const rows = (texts: Texts) =>
    Object.entries(texts).map(([tag, text]) => row(Number(tag), 2, Buffer.from(`${text}\0`.padEnd(8, '\0'))))
  const packet = xmp === undefined ? [] : [row(700, 1, Buffer.from(xmp))]
  return Buffer.concat([
    Buffer.from('MM\0*\0\0\0\x08', 'latin1'),
    ...[u16(firstRows), ...rows(first), ...packet, u16(0x8769), u16(4), u32(1), u32(start), u32(0)],
    ...[u16(Object.keys(exif).length), ...rows(exif), u32(0), ...values],
  ])
}

const original = (text: string) => exifOf({ 36867: text })

const rdf = 'xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"'
const namespaces = [
  'xmlns:exif="http://ns.adobe.com/exif/1.0/"',
  'xmlns:xmp="http://ns.adobe.com/xap/1.0/" xmlns:photoshop="http://ns.adobe.com/photoshop/1.0/"',
].join(' ')
/** A packet of XMP whose description begins with these attributes, and ends as they do. */
const packetOf = (properties: string, declared = namespaces) =>
  `<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF ${rdf}><rdf:Description ${declared} ${properties}</rdf:RDF></x:xmpmeta>`
const xmpPrefix = 'http://ns.adobe.com/xap/1.0/\0'
const xmpOf = (properties: string, declared?: string) =>
  Buffer.from(`${xmpPrefix}${packetOf(properties, declared)}`, 'latin1')
const elements = (content: string) => `>${content}</rdf:Description>`

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

const taken = async (file: Buffer) => (await readTakenTime(createMemorySource(file), now)).taken

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
  [
    'an element of XMP',
    jpegOf(xmpOf(elements('<xmp:CreateDate>2018-07-19T18:02:11Z</xmp:CreateDate>'))),
    time,
    0,
  ],
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
  expect(await taken(file)).toEqual({ time: expected, offset })
})

const comment = '<!-- <xmp:CreateDate>1999-09-09T09:09:09</xmp:CreateDate> xmp:CreateDate="1999-09-09" -->'
const other =
  '<m:Pantry xmlns:m="http://ns.adobe.com/xap/1.0/mm/"><rdf:Description xmp:CreateDate="1999-09-09"/></m:Pantry>'
const dated = 'xmp:CreateDate="2018-07-19T18:02:11"/>'
const damagedExif = exifSegment(original(clock).subarray(0, 30))

/** A JPEG file whose XMP continues in other segments, the last of which comes first. */
function extendedXmp(): Buffer {
  const identifier = '0123456789ABCDEF0123456789ABCDEF'
  const rest = packetOf('exif:DateTimeOriginal="2018-07-19T18:02:11"/>')
  const part = (from: number, to: number) =>
    Buffer.concat([
      Buffer.from(`http://ns.adobe.com/xmp/extension/\0${identifier}`),
      ...[u32(rest.length), u32(from), Buffer.from(rest.slice(from, to))],
    ])
  const note = `xmlns:n="http://ns.adobe.com/xmp/note/" n:HasExtendedXMP="${identifier}"/>`
  return jpegOf(part(150, rest.length), xmpOf(note), part(0, 150))
}

const keysOf = (created: string) =>
  Buffer.concat([
    box('hdlr', Buffer.alloc(8), Buffer.from('mdta'), Buffer.alloc(13)),
    box('keys', u32(0), u32(1), box('mdta', Buffer.from('com.apple.quicktime.creationdate'))),
    box('ilst', box('\0\0\0\x01', box('data', u32(1), u32(0), Buffer.from(created)))),
  ])

test.each([
  ['times in the first directory', exifOf({}, { 36867: clock, 36881: '+02:00' }), 120],
  ['an offset without its time', exifOf({ 36867: clock, 36880: '+02:00' }), 120],
  ['the offset of the same time', exifOf({ 36867: clock, 36880: '+02:00' }, { 306: clock }), 120],
  [
    'the offset of another time',
    exifOf({ 36867: clock, 36880: '+02:00' }, { 306: '2020:01:01 00:00:00' }),
    null,
  ],
  ['a fraction that lies outside', damagedFraction(), null],
  ['XMP behind a damaged block of Exif', jpegOf(damagedExif, xmpOf(dated)), null],
  ['Exif behind a damaged one', jpegOf(damagedExif, exifSegment(original(clock))), null],
  ['Exif behind damaged XMP', jpegOf(Buffer.from(`${xmpPrefix}<x`), exifSegment(original(clock))), null],
  [
    'Exif whose letters are large',
    jpegOf(Buffer.concat([Buffer.from('EXIF\0\xff', 'latin1'), original(clock)])),
    null,
  ],
  ['XMP in a TIFF file', exifOf({}, {}, packetOf(dated)), null],
  ['XMP in UTF-16', exifOf({}, {}, Buffer.from(`\ufeff${packetOf(dated)}`, 'utf16le')), null],
  [
    'XMP with another prefix',
    jpegOf(xmpOf('xap:CreateDate="2018-07-19T18:02:11"/>', 'xmlns:xap="http://ns.adobe.com/xap/1.0/"')),
    null,
  ],
  [
    'XMP with a text in CDATA',
    jpegOf(xmpOf(elements('<xmp:CreateDate><![CDATA[2018-07-19T18:02:11]]></xmp:CreateDate>'))),
    null,
  ],
  [
    'XMP behind a comment',
    jpegOf(xmpOf(elements(`${comment}<xmp:CreateDate>2018-07-19T18:02:11</xmp:CreateDate>`))),
    null,
  ],
  [
    'XMP behind that of another document',
    jpegOf(xmpOf(elements(`${other}<xmp:CreateDate>2018-07-19T18:02:11</xmp:CreateDate>`))),
    null,
  ],
  ['XMP in several segments', extendedXmp(), null],
  ['keys in a QuickTime file', box('moov', box('meta', keysOf('2018-07-19T18:02:11+0200'))), 120],
  [
    'keys in an MP4 file',
    box('moov', box('udta', box('meta', u32(0), keysOf('2018-07-19T18:02:11+0200')))),
    120,
  ],
  [
    'keys behind a damaged box',
    box('moov', box('meta', u32(0)), box('udta', box('meta', u32(0), keysOf('2018-07-19T18:02:11Z')))),
    0,
  ],
])('M9 %s: the time is read', async (_, file, offset) => {
  expect(await taken(file)).toEqual({ time, offset })
})

/** The text of the fraction ends after the block. */
function damagedFraction(): Buffer {
  const block = exifOf({ 36867: clock, 37521: '12345678' })
  return block.subarray(0, -4)
}

test.each([
  ['in a comment of XMP', jpegOf(xmpOf(elements(comment)))],
  ['of another document in XMP', jpegOf(xmpOf(elements(other)))],
  ['with the prefix of XMP for another namespace', jpegOf(xmpOf(dated, 'xmlns:xmp="http://example.com/"'))],
])('M9 a time %s is none', async (_, file) => {
  expect(await readTakenTime(createMemorySource(file), now)).toEqual({ taken: null, fault: null })
})

test.each([
  ['2012', '2012-01-01T00:00:00'],
  ['2012-05', '2012-05-01T00:00:00'],
  ['2012-05-29T08:55', '2012-05-29T08:55:00'],
  ['2012:05:29 8:5:6', '2012-05-29T08:05:06'],
  ['2012:05:  ', '2012-05-01T00:00:00'],
  ['2012:00:00 00:00:00', '2012-01-01T00:00:00'],
  ['2012:05:00 00:00:00', '2012-05-01T00:00:00'],
  ['2012:05:29 24:12:54', '2012-05-29T00:12:54'],
  ['2016-12-31T23:59:60Z', '2017-01-01T00:00:00'],
])('M9 the text %s is a time', (text, expected) => {
  expect(parseTimeText(text)?.time).toBe(at(expected))
})

test.each([
  ['of another form', original('29 May 2012, 8:55 am')],
  ['in a damaged block of Exif', jpegOf(damagedExif)],
  ['in a damaged directory', original(clock).subarray(0, 34)],
  ['in damaged XMP', jpegOf(Buffer.from(`${xmpPrefix}<x:xmpmeta>`))],
  ['in XMP that is too long', exifOf({}, {}, packetOf(elements(`${' '.repeat(300_000)}${dated}`)))],
  ['behind too many segments', jpegOf(...Array.from({ length: 3_000 }, () => Buffer.of(1)))],
])('X7 that a time %s may be there is known', async (_, file) => {
  const { taken: found, fault } = await readTakenTime(createMemorySource(file), now)
  expect([found, typeof fault]).toEqual([null, 'string'])
})

test.each([
  ['no time', exifOf({})],
  ['an unset clock', original('0000:00:00 00:00:00')],
  ['a block of zeros', jpegOf(exifSegment(Buffer.alloc(100)))],
  ['a day that does not exist', original('2023:02:29 10:00:00')],
  ['XMP without a time', jpegOf(xmpOf('/>'))],
])('X7 a file with %s has none', async (_, file) => {
  expect(await readTakenTime(createMemorySource(file), now)).toEqual({ taken: null, fault: null })
})

test('X7 all parts of a file of a known format are searched', async () => {
  const many = (part: Buffer) => Array.from({ length: 3_000 }, () => part)
  const webp = Buffer.concat([
    Buffer.from('RIFF\0\0\0\0WEBP'),
    ...many(Buffer.from('ANMF\0\0\0\0')),
    ...[Buffer.from('EXIF'), u32(original(clock).length).reverse(), original(clock)],
  ])
  const png = pngOf([], [chunk('eXIf', original(clock)), chunk('tEXt', Buffer.alloc(100_000))])
  const jpeg = jpegOf(...many(Buffer.of(1)), exifSegment(original(clock)))
  for (const [format, file] of [
    ['webp', webp],
    ['png', png],
    ['jpeg', jpeg],
  ] as const) {
    expect((await readTakenTime(createMemorySource(file), now)).taken).toBeNull()
    expect((await readTakenTime(createMemorySource(file), now, format)).taken?.time).toBe(time)
  }
})

test.each([
  ['an unset clock', original('0000:00:00 00:00:00')],
  ['spaces', original('    :  :     :  :  ')],
  ['the zero of Unix', original('1970:01:01 00:00:00')],
  ['the zero of QuickTime', original('1904:01:01 00:00:00')],
  ['a day that does not exist', original('2023:02:29 10:00:00')],
  ['a month that does not exist', original('2018:13:01 10:00:00')],
  ['an hour that does not exist', original('2018:07:19 25:00:00')],
  ['a minute that does not exist', original('2018:07:19 24:60:00')],
  ['the zero of Unix with a fraction', exifOf({ 36867: '1970:01:01 00:00:00', 37521: '67' })],
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
  expect(await taken(file)).toBeNull()
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
  expect((await readTakenTime(counted, now)).taken).toBeNull()
  expect(reads).toBeLessThan(20_000)
})

const chunk = (type: string, data: Buffer) =>
  Buffer.concat([u32(data.length), Buffer.from(type), data, u32(0)])
const itxt = (xmp: string) => chunk('iTXt', Buffer.from(`XML:com.adobe.xmp\0\0\0\0\0${packetOf(xmp)}`))
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
  expect((await readTakenTime(source, now)).taken?.time ?? null).toBe(expected)
  expect(fetches).toBeLessThanOrEqual(3)
}
