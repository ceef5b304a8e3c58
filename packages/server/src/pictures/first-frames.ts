import { type ByteSource, createMemorySource, UnreadableFile, withFile } from '@mediabucket/strip-metadata'
import type { PictureSource } from './picture-task.ts'
import { type Chunk, chunksOf, type PlacedFrame, pictureOfFrame, pngSignature } from './png-chunks.ts'

/**
 * The first frame of a GIF file that covers a part of the canvas, around which the decoder shows black, or of an animated PNG whose default
 * picture is no frame (PNG 3, 13.3). Null for other pictures, and for a damaged animation, of which decoders show what they can.
 */
export async function findFirstFrame(picture: PictureSource): Promise<PlacedFrame | null> {
  try {
    if (typeof picture === 'string') return await withFile(picture, find)
    return await find(createMemorySource(Buffer.from(picture.buffer, picture.byteOffset, picture.byteLength)))
  } catch (error) {
    if (error instanceof UnreadableFile || error instanceof RangeError) return null
    throw error
  }
}

async function find(source: ByteSource): Promise<PlacedFrame | null> {
  const start = await source.read(0, Math.min(pngSignature.byteLength, source.size))
  if (start.equals(pngSignature)) return findInPng(source)
  return /^GIF8[79]a/.test(start.toString('latin1')) ? findInGif(source) : null
}

const gifHeader = 13
const [extension, image, trailer] = [0x21, 0x2c, 0x3b]

/** A frame of one transparent pixel with two colours. If a frame is transparent, the decoder keeps what is transparent in all of them. */
export const transparentFrame = Buffer.from(
  '21f9040100000000 2c0000000001000100 80 000000ffffff 02024401 00'.replaceAll(' ', ''),
  'hex',
)

async function findInGif(source: ByteSource): Promise<PlacedFrame | null> {
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

async function findInPng(source: ByteSource): Promise<PlacedFrame | null> {
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
  return pictureOfFrame(source, { control, shared, pixels })
}
