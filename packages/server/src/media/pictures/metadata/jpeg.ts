import { exifPrefix, orientationBlock, orientationOf } from './exif.ts'
import { endOfImage, type JpegPart, jpegPartsOf } from './jpeg-parts.ts'
import { append, type ByteSource, type Edit, type Piece } from './pieces.ts'

/** The marker of the first application segment. */
const jfif = 0xe0

/**
 * A JPEG file with the segments that a decoder needs, the colour profile and the orientation. All other APPn segments, comments and
 * everything after the picture are left out: Exif, XMP, IPTC, maker notes, thumbnails, further pictures, videos of motion photos.
 */
export async function planJpeg(source: ByteSource): Promise<Piece[]> {
  const start: Piece[] = [{ from: 0, to: 2 }]
  const rest: Piece[] = []
  let isFirst = true
  let hasScan = false
  let orientation: number | null = null
  for await (const part of jpegPartsOf(source)) {
    // An application segment of JFIF is the first one, before Exif.
    await addPart(source, isFirst && part.marker === jfif ? start : rest, part)
    // Decoders read the orientation in the first Exif segment before the first scan.
    if (!hasScan && orientation === null && part.marker === 0xe1) orientation = await readExif(source, part)
    hasScan ||= part.marker === null
    isFirst = false
  }
  if (orientation !== null && orientation !== 1) append(start, { bytes: exifSegment(orientation) })
  for (const piece of rest) append(start, piece)
  return start
}

/** What becomes zeros of a JPEG file within another file: nothing moves, and the segments keep their lengths. */
export async function jpegEdits(source: ByteSource): Promise<Edit[]> {
  const edits: Edit[] = []
  let last = 0
  for await (const part of jpegPartsOf(source)) {
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
  return marker === 0xe2 && (await text(source, part, 12)) === 'ICC_PROFILE\0' ? length : null
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
