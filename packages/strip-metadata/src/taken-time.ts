import { type Box, boxAt, childOf, childrenOf, dataOf, type LoadedBoxes, loadBox } from './boxes.ts'
import { jpegPartsOf, startOfScan } from './jpeg.ts'
import { findMetadataItems, isPictureList } from './picture-items.ts'
import { type ByteSource, partOf, type Range, UnreadableFile } from './pieces.ts'
import { exifPrefix, placeOf, readDirectory, readFormat, readNumbers, sizesOf } from './tiff-directory.ts'

/** When a picture or a video was taken. */
export interface TakenTime {
  /** What the clock of the camera showed, in milliseconds since 1970 as if that clock were UTC. */
  readonly time: number
  /** The minutes by which this clock was ahead of UTC; null if the file does not state them. */
  readonly offset: number | null
}

// The limits keep a hostile file from taking more than some milliseconds, so that a server can read it between requests.

/** Parts of a file that are visited: segments, chunks, boxes. */
const maxParts = 2_000
/** Entries of a directory. */
const maxEntries = 4_096
/** Bytes of XMP, or of a box, that are read. */
const maxLoaded = 256 * 1024
/** Items of metadata in a file of pictures, which can be the same bytes. */
const maxItems = 8
/** Bytes of a text with a time. */
const maxText = 64

/** Where a time is found; those that come first are used first. */
const sources = [
  'exif-original',
  'movie-text',
  'xmp-original',
  'xmp-photoshop',
  'exif-digitized',
  'xmp-created',
  'movie-header',
] as const

type Found = Partial<Record<(typeof sources)[number], TakenTime | null>>

/** Boxes with which files of boxes begin. */
const firstBoxes: ReadonlySet<string> = new Set(['ftyp', 'moov', 'mdat', 'wide', 'free', 'skip', 'pnot'])

const signatures = {
  jpeg: /^\xff\xd8\xff/,
  png: /^\x89PNG\r\n/,
  webp: /^RIFF.{4}WEBP/s,
  tiff: /^(?:II[*+]\0|MM\0[*+])/,
} as const

/** False if `readTakenTime` finds nothing in a file that begins with these bytes. */
export function mayHaveTakenTime(head: Uint8Array): boolean {
  const start = Buffer.from(head.subarray(0, 12)).toString('latin1')
  return Object.values(signatures).some((shape) => shape.test(start)) || firstBoxes.has(start.slice(4, 8))
}

/**
 * When the picture or the video was taken; null if that is unknown. `now` is in milliseconds since 1970: later times than a day after it are
 * none, as are times before 1826, and the zeros of clocks that were never set. Throws only what `source` throws.
 */
export async function readTakenTime(source: ByteSource, now: number): Promise<TakenTime | null> {
  const found: Found = {}
  try {
    await find(source, found)
  } catch (error) {
    // A file that is damaged after the time still has it.
    if (!(error instanceof UnreadableFile || error instanceof RangeError)) throw error
  }
  for (const name of sources) {
    const taken = found[name]
    if (taken && isPlausible(taken.time, now)) return taken
  }
  return null
}

const earliest = Date.UTC(1826, 0, 1)
const zeros: ReadonlySet<number> = new Set([0, Date.UTC(1904, 0, 1)])
const day = 86_400_000

const isPlausible = (time: number, now: number): boolean =>
  time >= earliest && time < now + day && !zeros.has(time)

async function find(source: ByteSource, found: Found): Promise<void> {
  const start = (await source.read(0, Math.min(12, source.size))).toString('latin1')
  if (signatures.jpeg.test(start)) await findInJpeg(source, found)
  else if (signatures.png.test(start)) await findInPng(source, found)
  else if (signatures.webp.test(start)) await findInWebp(source, found)
  else if (signatures.tiff.test(start)) await readExif(source, found)
  else if (firstBoxes.has(start.slice(4, 8))) await findInBoxes(source, found)
}

const xmpPrefix = 'http://ns.adobe.com/xap/1.0/\0'

/** Bytes of a JPEG file that are searched for a marker at a time. Those of a fill before it are few. */
const markerRead = 4_096

async function findInJpeg(source: ByteSource, found: Found): Promise<void> {
  let parts = 0
  const readSome = (position: number) =>
    source.read(position, Math.max(1, Math.min(markerRead, source.size - position)))
  for await (const { marker, data, end } of jpegPartsOf({ ...source, readSome })) {
    parts += 1
    if (marker === startOfScan || parts > maxParts) return
    if (marker !== 0xe1) continue
    const start = (await source.read(data, Math.min(xmpPrefix.length, end - data))).toString('latin1')
    if (start.startsWith(exifPrefix)) await readExif(partOf(source, { start: data, end }), found)
    else if (start === xmpPrefix) await readXmp(source, { start: data + xmpPrefix.length, end }, found)
  }
}

const xmpKeyword = 'XML:com.adobe.xmp\0'

/** Bytes at the end of a PNG file in which chunks behind its pixels are searched. */
const pngEnd = 65_536

async function findInPng(source: ByteSource, found: Found): Promise<void> {
  for await (const chunk of chunksOf(source, 8)) {
    if (chunk.type === 'IDAT') {
      await findBehindPixels(source, chunk.end, found)
      return
    }
    await readPngChunk(source, chunk, found)
  }
}

interface Chunk extends Range {
  readonly type: string
}

/** The chunks of a PNG file from a position on, up to the last one. */
async function* chunksOf(source: ByteSource, first: number): AsyncGenerator<Chunk> {
  let position = first
  for (let parts = 0; parts < maxParts && position + 12 <= source.size; parts += 1) {
    const header = await source.read(position, 8)
    const [start, type] = [position + 8, header.toString('latin1', 4, 8)]
    const end = start + header.readUInt32BE(0)
    yield { type, start, end }
    if (type === 'IEND') return
    position = end + 4
  }
}

async function readPngChunk(source: ByteSource, { type, start, end }: Chunk, found: Found): Promise<void> {
  if (type === 'eXIf') await readExif(partOf(source, { start, end }), found)
  if (type === 'iTXt' && (await startsWith(source, start, xmpKeyword)))
    await readXmp(source, { start: start + xmpKeyword.length, end }, found)
}

/**
 * Pixels are in very many chunks, often of 8 kB, all of which would have to be read. So the chunks behind them are searched by their types, and
 * are those from which chunks lead to the last one.
 */
async function findBehindPixels(source: ByteSource, pixels: number, found: Found): Promise<void> {
  const from = Math.max(pixels, source.size - pngEnd)
  if (from >= source.size) return
  const text = (await source.read(from, source.size - from)).toString('latin1')
  const places = [...text.matchAll(/eXIf|iTXtXML:com\.adobe\.xmp\0/g)].slice(0, maxItems)
  for (const { index } of places) {
    const chunks: Chunk[] = []
    for await (const chunk of chunksOf(source, from + index - 4)) chunks.push(chunk)
    if (chunks.at(-1)?.type !== 'IEND') continue
    for (const chunk of chunks) await readPngChunk(source, chunk, found)
    return
  }
}

async function findInWebp(source: ByteSource, found: Found): Promise<void> {
  let position = 12
  for (let parts = 0; parts < maxParts && position + 8 <= source.size; parts += 1) {
    const header = await source.read(position, 8)
    const [start, type] = [position + 8, header.toString('latin1', 0, 4)]
    const end = start + header.readUInt32LE(4)
    if (type === 'EXIF') await readExif(partOf(source, { start, end }), found)
    if (type === 'XMP ') await readXmp(source, { start, end }, found)
    position = end + (end % 2)
  }
}

async function startsWith(source: ByteSource, position: number, text: string): Promise<boolean> {
  if (position + text.length > source.size) return false
  return (await source.read(position, text.length)).toString('latin1') === text
}

// Exif 3.0, 4.6.6: the time, its fraction and its offset from UTC are three texts.

const exifTags = {
  'exif-original': { time: 0x9003, fraction: 0x9291, offset: 0x9011 },
  'exif-digitized': { time: 0x9004, fraction: 0x9292, offset: 0x9012 },
} as const
const exifDirectory = 0x8769

/** Reads a TIFF structure, which may have the prefix of JPEG files. */
async function readExif(prefixed: ByteSource, found: Found): Promise<void> {
  const hasPrefix = await startsWith(prefixed, 0, exifPrefix)
  const block = hasPrefix ? partOf(prefixed, { start: exifPrefix.length, end: prefixed.size }) : prefixed
  const format = await readFormat(block)
  const entriesAt = async (position: number) => {
    const bytes = await block.read(position, sizesOf(format).count)
    // Of BigTIFF, too: a count above 48 bits has no entries in the file.
    const size = Math.min(6, bytes.byteLength)
    const count = format.isLittle
      ? bytes.readUIntLE(0, size)
      : bytes.readUIntBE(bytes.byteLength - size, size)
    if (count > maxEntries) throw new UnreadableFile('too many entries')
    return (await readDirectory(block, format, position)).entries
  }
  const pointer = (await entriesAt(format.first)).find(({ tag }) => tag === exifDirectory)
  const [position = 0] = pointer ? await readNumbers(block, format, pointer, 1) : []
  if (position === 0) return
  const entries = await entriesAt(position)
  const textOf = async (tag: number): Promise<string> => {
    const entry = entries.find((each) => each.tag === tag)
    if (!entry) return ''
    const { range } = placeOf(block, format, entry)
    return cleaned(await block.read(range.start, Math.min(maxText, range.end - range.start)))
  }
  for (const name of ['exif-original', 'exif-digitized'] as const) {
    const { time, fraction, offset } = exifTags[name]
    const digits = await textOf(fraction)
    const text = `${await textOf(time)}${/^\d+$/.test(digits) ? `.${digits}` : ''}`
    found[name] ??= parseTaken(text, await textOf(offset))
  }
}

const cleaned = (bytes: Buffer): string => bytes.toString('latin1').replace(/\0.*/s, '').trim()

const timeShape =
  /^(\d{4})[:-](\d\d)[:-](\d\d)(?:[ T](\d\d):(\d\d)(?::(\d\d)(?:[.,](\d+))?)?\s?(Z|[+-]\d\d:?\d\d)?)?$/

/** Reads a time of Exif, XMP or QuickTime; null if it is none. A date alone is its first moment. `offset` is used if the text has none. */
function parseTaken(text: string, offset = ''): TakenTime | null {
  const [, year, month, date, hour = '00', minute = '00', second = '00', fraction = '', zone = offset] =
    timeShape.exec(text) ?? []
  const clock = `${year}-${month}-${date}T${hour}:${minute}:${second}`
  const time = Date.parse(`${clock}Z`)
  // Date.parse accepts February 30.
  if (Number.isNaN(time) || !new Date(time).toISOString().startsWith(clock)) return null
  return { time: time + Number(fraction.slice(0, 3).padEnd(3, '0')), offset: parseOffset(zone) }
}

/** The largest offset of a time zone. Minutes. */
const maxOffset = 14 * 60

function parseOffset(text: string): number | null {
  if (text === 'Z') return 0
  const [, sign, hours, minutes] = /^([+-])(\d\d):?([0-5]\d)$/.exec(text) ?? []
  const offset = Number(hours) * 60 + Number(minutes)
  if (!(offset <= maxOffset)) return null
  return sign === '-' && offset > 0 ? -offset : offset
}

// XMP, part 2: a property is an attribute or an element, with the customary prefix of its namespace.

const properties = {
  'xmp-original': /\bexif:DateTimeOriginal\s*(?:=\s*["']|>)\s*([\dT:.+Z-]+)/,
  'xmp-photoshop': /\bphotoshop:DateCreated\s*(?:=\s*["']|>)\s*([\dT:.+Z-]+)/,
  'xmp-created': /\bxmp:CreateDate\s*(?:=\s*["']|>)\s*([\dT:.+Z-]+)/,
} as const

async function readXmp(source: ByteSource, { start, end }: Range, found: Found): Promise<void> {
  const text = (await source.read(start, Math.min(maxLoaded, end - start))).toString('latin1')
  for (const name of ['xmp-original', 'xmp-photoshop', 'xmp-created'] as const)
    found[name] ??= parseTaken(properties[name].exec(text)?.[1]?.slice(0, maxText) ?? '')
}

// Files of boxes (ISO 14496-12).

async function findInBoxes(source: ByteSource, found: Found): Promise<void> {
  const visited = new Set<string>()
  for await (const box of boxesOf(source, { start: 0, end: source.size })) {
    // Decoders read the first one of each type.
    if (visited.has(box.type)) continue
    visited.add(box.type)
    if (box.type === 'moov') await findInMovie(source, box, found)
    if (box.type === 'meta') await findInPictures(source, await loadBox(source, box, maxLoaded), box, found)
  }
}

/** The boxes of a range, without their content. */
async function* boxesOf(source: ByteSource, { start, end }: Range): AsyncGenerator<Box> {
  let position = start
  for (let parts = 0; parts < maxParts && position < end; parts += 1) {
    const box = boxAt(await source.read(position, Math.min(16, end - position)), position, end)
    if (box === null) return
    yield box
    position = box.end
  }
}

/** The Exif of a HEIC or AVIF picture follows a number: the bytes before its TIFF structure. */
async function findInPictures(
  source: ByteSource,
  loaded: LoadedBoxes,
  list: Box,
  found: Found,
): Promise<void> {
  if (!isPictureList(loaded, list)) return
  for (const { start, end, kind, isXmp } of findMetadataItems(loaded, list, source.size).slice(0, maxItems)) {
    if (isXmp) await readXmp(source, { start, end }, found)
    if (kind !== 'Exif' || end - start < 4) continue
    const skipped = (await source.read(start, 4)).readUInt32BE()
    if (start + 4 + skipped < end) await readExif(partOf(source, { start: start + 4 + skipped, end }), found)
  }
}

/** From 1904, in which movie headers begin to count, to 1970. Milliseconds. */
const movieEpoch = Date.UTC(1904, 0, 1)

/** The header has the time in UTC. QuickTime files of phones also have it as a text, with its offset. */
async function findInMovie(source: ByteSource, movie: Box, found: Found): Promise<void> {
  let hasKeys = false
  for await (const box of boxesOf(source, { start: movie.data, end: movie.end })) {
    if (box.type === 'mvhd') {
      const data = await source.read(box.data, 12)
      const seconds = data[0] === 1 ? Number(data.readBigUInt64BE(4)) : data.readUInt32BE(4)
      const time = movieEpoch + seconds * 1000
      // There were no such files before. Some programs write a few seconds after 1904 or 1970.
      if (time > day) found['movie-header'] ??= { time, offset: 0 }
    }
    if (box.type !== 'meta' || hasKeys) continue
    hasKeys = true
    findInKeys(await loadBox(source, box, maxLoaded), box, found)
  }
}

const creationKey = 'com.apple.quicktime.creationdate'

/** The box has a list of keys, and their values by the numbers of the keys. In files of MP4 it begins with a version. */
function findInKeys(loaded: LoadedBoxes, meta: Box, found: Found): void {
  const hasVersion = dataOf(loaded, meta).toString('latin1', 4, 8) !== 'hdlr'
  const boxes = new Map(childrenOf(loaded, meta, hasVersion ? 4 : 0).map((box) => [box.type, box]))
  const [keys, values] = [boxes.get('keys'), boxes.get('ilst')]
  if (!keys || !values) return
  const index = childrenOf(loaded, keys, 8).findIndex(
    (key) => dataOf(loaded, key).toString('latin1') === creationKey,
  )
  const entry = childrenOf(loaded, values).find(
    ({ type }) => Buffer.from(type, 'latin1').readUInt32BE() === index + 1,
  )
  const value = index < 0 || !entry ? null : childOf(loaded, entry, 'data')
  if (value) found['movie-text'] ??= parseTaken(cleaned(dataOf(loaded, value).subarray(8, 8 + maxText)))
}
