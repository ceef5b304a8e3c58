import { crc32 } from 'node:zlib'
import { type ByteSource, createMemorySource, UnreadableFile, withFile } from '@mediabucket/strip-metadata'
import type { PictureSource } from './picture-task.ts'

/** The first frame of an animation where the decoder shows something else, as a picture of its own. */
export interface FirstFrame {
  readonly picture: Uint8Array
  /** Where the frame is on a transparent canvas; null if the decoder finds it there. Pixels. */
  readonly place: Place | null
}

interface Place {
  readonly left: number
  readonly top: number
  readonly right: number
  readonly bottom: number
}

/**
 * The first frame of a GIF file that covers a part of the canvas, around which the decoder shows black, or of an animated PNG whose default
 * picture is no frame (PNG 3, 13.3). Null for other pictures, and for a damaged animation, of which decoders show what they can.
 */
export async function findFirstFrame(picture: PictureSource): Promise<FirstFrame | null> {
  try {
    if (typeof picture === 'string') return await withFile(picture, find)
    return await find(createMemorySource(Buffer.from(picture.buffer, picture.byteOffset, picture.byteLength)))
  } catch (error) {
    if (error instanceof UnreadableFile || error instanceof RangeError) return null
    throw error
  }
}

async function find(source: ByteSource): Promise<FirstFrame | null> {
  const start = await source.read(0, Math.min(pngSignature.byteLength, source.size))
  if (start.equals(pngSignature)) return findInPng(source)
  return /^GIF8[79]a/.test(start.toString('latin1')) ? findInGif(source) : null
}

const gifHeader = 13
const [extension, image, trailer] = [0x21, 0x2c, 0x3b]

/** A frame of one transparent pixel with two colours. If a frame is transparent, the decoder keeps what is transparent in all of them. */
const transparentFrame = Buffer.from(
  '21f9040100000000 2c0000000001000100 80 000000ffffff 02024401 00'.replaceAll(' ', ''),
  'hex',
)

async function findInGif(source: ByteSource): Promise<FirstFrame | null> {
  const header = await source.read(0, gifHeader)
  const [width, height] = [header.readUInt16LE(6), header.readUInt16LE(8)]
  let position = gifHeader + coloursOf(header.readUInt8(10))
  for (;;) {
    const type = (await source.read(position, 1)).readUInt8()
    if (type === image) break
    if (type !== extension) return null
    position = await endOfBlocks(source, position + 2)
  }
  const frame = await source.read(position, 10)
  const [left, top] = [frame.readUInt16LE(1), frame.readUInt16LE(3)]
  const [right, bottom] = [left + frame.readUInt16LE(5), top + frame.readUInt16LE(7)]
  if (left === 0 && top === 0 && right >= width && bottom >= height) return null
  // The size of the first code follows the colours.
  const end = await endOfBlocks(source, position + frame.byteLength + coloursOf(frame.readUInt8(9)) + 1)
  const bytes = await source.read(0, end)
  return { picture: Buffer.concat([bytes, transparentFrame, Buffer.of(trailer)]), place: null }
}

/** Bytes of the table of colours that these flags declare. */
const coloursOf = (flags: number): number => ((flags & 0x80) === 0 ? 0 : 3 * (2 << (flags & 7)))

/** The position after blocks of up to 255 bytes, of which the last one is empty. */
async function endOfBlocks(source: ByteSource, first: number): Promise<number> {
  for (let position = first; ; ) {
    const length = (await source.read(position, 1)).readUInt8()
    position += 1 + length
    if (length === 0) return position
  }
}

const pngSignature = Buffer.from('\x89PNG\r\n\x1a\n', 'latin1')

/** A chunk of a PNG file, and where its data is. */
interface Chunk {
  readonly type: string
  readonly start: number
  readonly end: number
}

/** The chunks of a PNG file, without their lengths, types and checksums. */
async function* chunksOf(source: ByteSource): AsyncGenerator<Chunk> {
  for (let position = pngSignature.byteLength; position + 12 <= source.size; ) {
    const header = await source.read(position, 8)
    const start = position + header.byteLength
    const end = start + header.readUInt32BE(0)
    const type = header.toString('latin1', 4, 8)
    yield { type, start, end }
    if (type === 'IEND') return
    position = end + 4
  }
}

async function findInPng(source: ByteSource): Promise<FirstFrame | null> {
  let [isAnimated, hasPixels] = [false, false]
  const shared: Chunk[] = []
  const pixels: Chunk[] = []
  let control: Buffer | null = null
  for await (const chunk of chunksOf(source)) {
    const { type, start } = chunk
    if (control !== null && type !== 'fdAT') break
    isAnimated ||= type === 'acTL'
    // The default picture is the first frame, or there is no other one.
    if (type === 'IDAT' && !isAnimated) return null
    hasPixels ||= type === 'IDAT'
    if (type === 'fcTL' && !hasPixels) return null
    if (type === 'fcTL') control = await source.read(start, 26)
    else if (type === 'fdAT') pixels.push(chunk)
    else if (!hasPixels && type !== 'acTL') shared.push(chunk)
  }
  if (control === null || pixels.length === 0) return null
  return pictureOf(source, { control, shared, pixels })
}

/** A picture of the pixels of a frame, with the colours of the file. */
async function pictureOf(
  source: ByteSource,
  frame: { readonly control: Buffer; readonly shared: readonly Chunk[]; readonly pixels: readonly Chunk[] },
): Promise<FirstFrame | null> {
  const { control, shared, pixels } = frame
  const read = ({ start, end }: Omit<Chunk, 'type'>) => source.read(start, end - start)
  const [header, ...others] = shared
  if (header?.type !== 'IHDR') return null
  const data = Buffer.from(await read(header))
  const canvas = { width: data.readUInt32BE(0), height: data.readUInt32BE(4) }
  const numbers = [4, 8, 12, 16].map((at) => control.readUInt32BE(at))
  const [width = 0, height = 0, left = 0, top = 0] = numbers
  const [right, bottom] = [canvas.width - left - width, canvas.height - top - height]
  if (right < 0 || bottom < 0) return null
  data.writeUInt32BE(width, 0)
  data.writeUInt32BE(height, 4)
  const chunks = [encoded('IHDR', data)]
  for (const chunk of others) chunks.push(encoded(chunk.type, await read(chunk)))
  // The number of the chunk precedes its pixels.
  for (const { start, end } of pixels) chunks.push(encoded('IDAT', await read({ start: start + 4, end })))
  const picture = Buffer.concat([pngSignature, ...chunks, encoded('IEND', Buffer.alloc(0))])
  return { picture, place: left + top + right + bottom === 0 ? null : { left, top, right, bottom } }
}

function encoded(type: string, data: Buffer): Buffer {
  const [length, sum] = [Buffer.alloc(4), Buffer.alloc(4)]
  const named = Buffer.concat([Buffer.from(type, 'latin1'), data])
  length.writeUInt32BE(data.byteLength)
  sum.writeUInt32BE(crc32(named))
  return Buffer.concat([length, named, sum])
}
