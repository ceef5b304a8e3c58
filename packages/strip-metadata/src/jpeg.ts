import {
  append,
  type ByteSource,
  type Edit,
  type Piece,
  type Range,
  requireProfile,
  UnreadableFile,
} from './pieces.ts'
import { exifPrefix, orientationBlock, orientationOf } from './tiff-directory.ts'

/** The marker of the first application segment. */
const jfif = 0xe0

/**
 * A JPEG file with the segments that a decoder needs, the colour profile and the orientation. All other APPn segments, comments and
 * everything after the picture are left out: Exif, XMP, IPTC, maker notes, thumbnails, further pictures, videos of motion photos.
 */
export async function planJpeg(source: ByteSource): Promise<Piece[]> {
  const start: Piece[] = [{ from: 0, to: 2 }]
  const rest: Piece[] = []
  const profile: JpegPart[] = []
  let isFirst = true
  let hasScan = false
  let orientation: number | null = null
  for await (const part of jpegPartsOf(source)) {
    if (part.marker === profileMarker && (await text(source, part, 12)) === profileName) profile.push(part)
    // An application segment of JFIF is the first one, before Exif.
    await addPart(source, isFirst && part.marker === jfif ? start : rest, part)
    // Decoders read the orientation in the first Exif segment before the first scan.
    if (!hasScan && orientation === null && part.marker === 0xe1) orientation = await readExif(source, part)
    hasScan ||= part.marker === null
    isFirst = false
  }
  if (profile.length > 0) await requireWholeProfile(source, profile)
  if (orientation !== null && orientation !== 1) append(start, { bytes: exifSegment(orientation) })
  for (const piece of rest) append(start, piece)
  return start
}

/**
 * What becomes zeros of a JPEG file within another file: nothing moves, and the segments keep their lengths. With `hasPicture` false, the file has
 * the tables of pictures in others.
 */
export async function jpegEdits(source: ByteSource, hasPicture = true): Promise<Edit[]> {
  const edits: Edit[] = []
  let last = 0
  for await (const part of jpegPartsOf(source, hasPicture)) {
    const start = part.data + ((await neededLength(source, part)) ?? 0)
    edits.push({ start, end: part.end, bytes: null })
    last = part.end
  }
  edits.push({ start: last, end: source.size, bytes: null })
  return edits.filter(({ start, end }) => start < end)
}

async function readExif(source: ByteSource, part: JpegPart): Promise<number | null> {
  if ((await text(source, part, exifPrefix.length)) !== exifPrefix) return null
  return orientationOf(await source.read(part.data, part.end - part.data))
}

async function addPart(source: ByteSource, pieces: Piece[], part: JpegPart): Promise<void> {
  const { marker, start, data, end } = part
  const needed = await neededLength(source, part)
  if (needed === null) return
  if (marker === null || needed === end - data) return append(pieces, { from: start, to: end })
  const fixed = await source.read(data, needed)
  const size = marker === jfif ? [0, 0] : []
  const length = 2 + fixed.byteLength + size.length
  append(pieces, { bytes: Buffer.from([0xff, marker, 0, length, ...fixed, ...size]) })
}

/** How many bytes of the parameters of a part a decoder needs; null if it does not need the part. */
async function neededLength(source: ByteSource, part: JpegPart): Promise<number | null> {
  const { marker, data, end } = part
  const length = end - data
  if (marker === null || marker < jfif || marker === endOfImage) return length
  // Without the thumbnail, whose size follows the 12 bytes.
  if (marker === jfif && (await text(source, part, 5)) === 'JFIF\0' && length >= 14) return 12
  if (marker === 0xee && (await text(source, part, 5)) === 'Adobe' && length >= 12) return 12
  return marker === profileMarker && (await text(source, part, 12)) === profileName ? length : null
}

const profileMarker = 0xe2
const profileName = 'ICC_PROFILE\0'

/** The parts of a colour profile have numbers from 1 on, and their count (ICC.1, B.4). Throws UnreadableFile if decoders would ignore some. */
async function requireWholeProfile(source: ByteSource, parts: readonly JpegPart[]): Promise<void> {
  const found = new Map<number, Buffer>()
  for (const { data, end } of parts) {
    const bytes = await source.read(data, end - data)
    if (bytes.byteLength < 14 || bytes[13] !== parts.length) throw damaged('a colour profile is incomplete')
    found.set(bytes.readUInt8(12), bytes.subarray(14))
  }
  const ordered = parts.map((_, index) => found.get(index + 1))
  if (ordered.includes(undefined)) throw damaged('a colour profile is incomplete')
  requireProfile(Buffer.concat(ordered.flatMap((bytes) => bytes ?? [])))
}

/** The first characters of the parameters. */
async function text(source: ByteSource, { data, end }: JpegPart, length: number): Promise<string> {
  return (await source.read(data, Math.min(length, end - data))).toString('latin1')
}

function exifSegment(orientation: number): Buffer {
  const block = orientationBlock(orientation)
  const length = 2 + exifPrefix.length + block.byteLength
  return Buffer.concat([Buffer.from([0xff, 0xe1, 0, length]), Buffer.from(exifPrefix), block])
}

const startOfImage = 0xd8
const endOfImage = 0xd9
export const startOfScan = 0xda

/** The length of a scan of one component, without its marker. Bytes. */
const minScan = 8

/** Cameras write less than 100, and less than 1,000 if they store other pictures in them. */
const maxSegments = 100_000

/** A segment, the marker of the end, or the compressed data of a scan, which has no marker. */
interface JpegPart extends Range {
  readonly marker: number | null
  /** The position of the parameters, after their length. */
  readonly data: number
}

/** The parts of a JPEG file in their order, up to its end. The file may end within a scan. Throws UnreadableFile. */
export async function* jpegPartsOf(source: ByteSource, hasPicture = true): AsyncGenerator<JpegPart> {
  if ((await source.read(0, 2)).readUInt16BE() !== 0xff00 + startOfImage) throw damaged('no start')
  let [hasFrame, hasScan] = [false, false]
  let position = 2
  for (let segments = 1; segments <= maxSegments; segments += 1) {
    const segment = await readSegment(source, position)
    yield segment
    position = segment.end
    hasFrame ||= isFrame(segment.marker)
    if (segment.marker === endOfImage) {
      if (!hasScan && hasPicture) throw damaged('no scan')
      return
    }
    if (segment.marker !== startOfScan) continue
    if (!hasFrame) throw damaged('no frame')
    hasScan = true
    const end = await endOfData(source, position)
    yield { marker: null, start: position, data: position, end }
    if (end === source.size) return
    position = end
  }
  throw damaged('too many segments')
}

async function readSegment(
  source: ByteSource,
  position: number,
): Promise<JpegPart & { readonly marker: number }> {
  // A marker may be preceded by any number of bytes FF. Its own FF is the last one.
  const after = await endOfFill(source, position)
  if (after === position) throw damaged('no marker')
  const start = after - 1
  const marker = (await source.read(after, 1)).readUInt8()
  if (marker === endOfImage) return { marker, start, data: start + 2, end: start + 2 }
  if (marker < 0xc0 || (marker >= 0xd0 && marker < startOfScan)) throw damaged('an unexpected marker')
  if (unsupported.has(marker)) throw damaged('a form of JPEG that no decoder reads')
  const length = (await source.read(start + 2, 2)).readUInt16BE()
  const end = start + 2 + length
  if (length < (marker === startOfScan ? minScan : 2)) throw damaged('a segment is too short')
  if (end > source.size) throw damaged('a segment ends after the file')
  const segment = { marker, start, data: start + 4, end }
  if (marker < jfif) requireExact(marker, await source.read(segment.data, end - segment.data))
  return segment
}

/** Extensions, and hierarchical pictures. */
const unsupported: ReadonlySet<number> = new Set([0xc8, 0xde, 0xdf])

const [huffman, arithmetic, quantization, lineCount, interval] = [0xc4, 0xcc, 0xdb, 0xdc, 0xdd]

/** Throws UnreadableFile unless a segment of the decoder ends with its parameters (ITU-T T.81, B.2). Bytes behind them are used by no decoder. */
function requireExact(marker: number, data: Buffer): void {
  if (contentLength(marker, data) !== data.byteLength) throw damaged('a segment has a wrong length')
}

function contentLength(marker: number, data: Buffer): number {
  if (marker === startOfScan) return 4 + 2 * (data[0] ?? 0)
  if (isFrame(marker)) return 6 + 3 * (data[5] ?? 0)
  if (marker === interval || marker === lineCount) return 2
  if (marker === arithmetic) return data.byteLength - (data.byteLength % 2)
  let at = 0
  while (at < data.byteLength && (marker === huffman || marker === quantization))
    at +=
      marker === quantization
        ? 1 + ((data[at] ?? 0) < 16 ? 64 : 128)
        : 17 + data.subarray(at + 1, at + 17).reduce((sum, count) => sum + count, 0)
  return at
}

/** The position of the first byte from `position` on that is not FF. */
async function endOfFill(source: ByteSource, position: number): Promise<number> {
  for (let start = position; ; ) {
    const bytes = await source.readSome(start)
    const length = bytes.findIndex((byte) => byte !== 0xff)
    if (length >= 0) return start + length
    start += bytes.byteLength
  }
}

/** The position of the next marker in compressed data, or the size of the file. */
async function endOfData(source: ByteSource, from: number): Promise<number> {
  let previous = 0
  for (let position = from; position < source.size; ) {
    const bytes = await source.readSome(position)
    for (let at = 0; at < bytes.byteLength; at += 1) {
      const byte = bytes[at] ?? 0
      if (previous === 0xff && !isData(byte)) return position + at - 1
      previous = byte
    }
    position += bytes.byteLength
  }
  return source.size
}

/** Whether a byte after FF belongs to compressed data: an escaped FF, a fill byte, or a restart. */
const isData = (byte: number) => byte === 0 || byte === 0xff || (byte >= 0xd0 && byte <= 0xd7)

/** Not DHT, JPG and DAC. */
const isFrame = (marker: number) => marker >= 0xc0 && marker <= 0xcf && ![0xc4, 0xc8, 0xcc].includes(marker)

const damaged = (what: string) => new UnreadableFile(`not a JPEG file: ${what}`)
