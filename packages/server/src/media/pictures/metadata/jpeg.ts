import { exifPrefix, orientationBlock, orientationOf } from './exif.ts'
import { endOfImage, type JpegPart, jpegPartsOf } from './jpeg-parts.ts'
import { append, type ByteSource, type Piece } from './pieces.ts'

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
    await addPart(source, isFirst && part.marker === 0xe0 ? start : rest, part)
    // Decoders read the orientation in the first Exif segment before the first scan.
    if (!hasScan && orientation === null && part.marker === 0xe1) orientation = await readExif(source, part)
    hasScan ||= part.marker === null
    isFirst = false
  }
  if (orientation !== null && orientation !== 1) append(start, { bytes: exifSegment(orientation) })
  for (const piece of rest) append(start, piece)
  return start
}

async function readExif(source: ByteSource, part: JpegPart): Promise<number | null> {
  if ((await text(source, part, exifPrefix.length)) !== exifPrefix) return null
  return orientationOf(await source.read(part.data, part.end - part.data))
}

async function addPart(source: ByteSource, pieces: Piece[], part: JpegPart): Promise<void> {
  const { marker, start, data, end } = part
  if (marker === 0xe0 && (await text(source, part, 5)) === 'JFIF\0' && end - data >= 14) {
    // Without its thumbnail, whose size follows the 12 bytes.
    const fixed = await source.read(data, 12)
    return append(pieces, { bytes: Buffer.from([0xff, 0xe0, 0, 16, ...fixed, 0, 0]) })
  }
  if (marker === 0xee && (await text(source, part, 5)) === 'Adobe' && end - data >= 12) {
    const fixed = await source.read(data, 12)
    return append(pieces, { bytes: Buffer.from([0xff, 0xee, 0, 14, ...fixed]) })
  }
  const isProfile = marker === 0xe2 && (await text(source, part, 12)) === 'ICC_PROFILE\0'
  const isNeeded = isProfile || marker === null || marker < 0xe0 || marker === endOfImage
  if (isNeeded) append(pieces, { from: start, to: end })
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
