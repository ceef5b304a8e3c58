import { type ByteSource, type Range, UnreadableFile } from './pieces.ts'

const startOfImage = 0xd8
export const endOfImage = 0xd9
const startOfScan = 0xda

/** The length of a scan of one component, without its marker. Bytes. */
const minScan = 8

/** Cameras write less than 100, and less than 1,000 if they store other pictures in them. */
const maxSegments = 100_000

/** A segment, the marker of the end, or the compressed data of a scan, which has no marker. */
export interface JpegPart extends Range {
  readonly marker: number | null
  /** The position of the parameters, after their length. */
  readonly data: number
}

/** The parts of a JPEG file in their order, up to its end. The file may end within a scan. Throws UnreadableFile. */
export async function* jpegPartsOf(source: ByteSource): AsyncGenerator<JpegPart> {
  if ((await source.read(0, 2)).readUInt16BE() !== 0xff00 + startOfImage) throw damaged('no start')
  let [hasFrame, hasScan] = [false, false]
  let position = 2
  for (let segments = 1; segments <= maxSegments; segments += 1) {
    const segment = await readSegment(source, position)
    yield segment
    position = segment.end
    hasFrame ||= isFrame(segment.marker)
    if (segment.marker === endOfImage) {
      if (!hasScan) throw damaged('no scan')
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
  const length = (await source.read(start + 2, 2)).readUInt16BE()
  const end = start + 2 + length
  if (length < (marker === startOfScan ? minScan : 2)) throw damaged('a segment is too short')
  if (end > source.size) throw damaged('a segment ends after the file')
  return { marker, start, data: start + 4, end }
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
