import { exifPrefix, orientationBlock, orientationOf } from './exif.ts'
import { append, type ByteSource, type Piece, UnreadableFile } from './pieces.ts'

const startOfImage = 0xd8
const endOfImage = 0xd9
const startOfScan = 0xda

/** Bytes that are searched for markers at a time. */
const window = 1024 * 1024

/** A marker and its parameters. */
interface Segment {
  readonly marker: number
  /** The position of the marker. */
  readonly start: number
  /** The position of the parameters, after their length. */
  readonly data: number
  readonly end: number
}

/**
 * A JPEG file with the segments that a decoder needs, the colour profile and the orientation. All other APPn segments, comments and
 * everything after the picture are left out: Exif, XMP, IPTC, maker notes, thumbnails, further pictures, videos of motion photos.
 */
export async function planJpeg(source: ByteSource): Promise<Piece[]> {
  if ((await source.read(0, 2)).readUInt16BE() !== 0xff00 + startOfImage) throw damaged('no start')
  const pieces: Piece[] = []
  append(pieces, { from: 0, to: 2 })
  const { segments, orientation } = await readHeader(source)
  // An application segment of JFIF is the first one.
  const first = segments[0]?.marker === 0xe0 ? 1 : 0
  for (const segment of segments.slice(0, first)) await addSegment(source, pieces, segment)
  if (orientation !== 1) append(pieces, { bytes: exifSegment(orientation) })
  for (const segment of segments.slice(first)) await addSegment(source, pieces, segment)
  await addScans(source, pieces, segments.at(-1)?.end ?? 0)
  return pieces
}

/** The segments up to the first scan, which is the last one; and the orientation in the first Exif segment, as decoders read it. */
async function readHeader(source: ByteSource): Promise<{ segments: Segment[]; orientation: number }> {
  const segments: Segment[] = []
  let orientation: number | null = null
  for (let position = 2; ; ) {
    const segment = await readSegment(source, position)
    segments.push(segment)
    if (segment.marker === 0xe1 && (await text(source, segment, exifPrefix.length)) === exifPrefix)
      orientation ??= orientationOf(await source.read(segment.data, segment.end - segment.data))
    position = segment.end
    if (segment.marker !== startOfScan) continue
    if (!segments.some(({ marker }) => isFrame(marker))) throw damaged('no frame')
    return { segments, orientation: orientation ?? 1 }
  }
}

/** Copies the scans, and leaves out segments between them. The file may end before the end of the picture. */
async function addScans(source: ByteSource, pieces: Piece[], from: number): Promise<void> {
  for (let position = from; ; ) {
    const marker = await nextMarker(source, position)
    append(pieces, { from: position, to: marker })
    if (marker === source.size) return
    const bytes = await source.read(marker, 2)
    if (bytes[1] === endOfImage) return append(pieces, { from: marker, to: marker + 2 })
    let segment: Segment
    position = marker
    do {
      segment = await readSegment(source, position)
      await addSegment(source, pieces, segment)
      position = segment.end
      if (segment.marker === endOfImage) return
    } while (segment.marker !== startOfScan)
  }
}

async function readSegment(source: ByteSource, position: number): Promise<Segment> {
  let start = position
  let marker = 0xff
  // A marker may be preceded by any number of bytes FF.
  for (; marker === 0xff; start += 1) {
    const bytes = await source.read(start, 2)
    if (bytes[0] !== 0xff) throw damaged('no marker')
    marker = bytes[1] ?? 0
  }
  start -= 1
  if (marker === endOfImage) return { marker, start, data: start + 2, end: start + 2 }
  if (marker < 0xc0 || (marker >= 0xd0 && marker < startOfScan)) throw damaged('an unexpected marker')
  const length = (await source.read(start + 2, 2)).readUInt16BE()
  const end = start + 2 + length
  if (length < 2 || end > source.size) throw damaged('a segment ends after the file')
  return { marker, start, data: start + 4, end }
}

/** The position of the next marker in compressed data, or the size of the file. */
async function nextMarker(source: ByteSource, from: number): Promise<number> {
  for (let position = from; position + 1 < source.size; ) {
    const bytes = await source.read(position, Math.min(window, source.size - position))
    for (let at = bytes.indexOf(0xff); at >= 0 && at + 1 < bytes.length; at = bytes.indexOf(0xff, at + 1)) {
      const code = bytes[at + 1] ?? 0
      const isData = code === 0 || code === 0xff || (code >= 0xd0 && code <= 0xd7)
      if (!isData) return position + at
    }
    // The last byte may be the first one of a marker.
    position += bytes.length - 1
  }
  return source.size
}

async function addSegment(source: ByteSource, pieces: Piece[], segment: Segment): Promise<void> {
  const { marker, start, data, end } = segment
  if (marker === 0xe0 && (await text(source, segment, 5)) === 'JFIF\0' && end - data >= 14) {
    // Without its thumbnail, whose size follows the 12 bytes.
    const fixed = await source.read(data, 12)
    return append(pieces, { bytes: Buffer.from([0xff, 0xe0, 0, 16, ...fixed, 0, 0]) })
  }
  if (marker === 0xee && (await text(source, segment, 5)) === 'Adobe' && end - data >= 12) {
    const fixed = await source.read(data, 12)
    return append(pieces, { bytes: Buffer.from([0xff, 0xee, 0, 14, ...fixed]) })
  }
  const isProfile = marker === 0xe2 && (await text(source, segment, 12)) === 'ICC_PROFILE\0'
  const isNeeded = isProfile || marker < 0xe0
  if (isNeeded) append(pieces, { from: start, to: end })
}

/** The first characters of the parameters. */
async function text(source: ByteSource, { data, end }: Segment, length: number): Promise<string> {
  return (await source.read(data, Math.min(length, end - data))).toString('latin1')
}

/** Not DHT, JPG and DAC. */
const isFrame = (marker: number) => marker >= 0xc0 && marker <= 0xcf && ![0xc4, 0xc8, 0xcc].includes(marker)

function exifSegment(orientation: number): Buffer {
  const block = orientationBlock(orientation)
  const length = 2 + exifPrefix.length + block.byteLength
  return Buffer.concat([Buffer.from([0xff, 0xe1, 0, length]), Buffer.from(exifPrefix), block])
}

const damaged = (what: string) => new UnreadableFile(`not a JPEG file: ${what}`)
