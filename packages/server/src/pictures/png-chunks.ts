import { crc32 } from 'node:zlib'
import type { ByteSource } from '@mediabucket/strip-metadata'

/** A frame of an animation as a picture of its own. */
export interface PlacedFrame {
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

export const pngSignature = Buffer.from('\x89PNG\r\n\x1a\n', 'latin1')

/** A chunk of a PNG file, and where its data is. */
export interface Chunk {
  readonly type: string
  readonly start: number
  readonly end: number
}

/** The chunks of a PNG file, without their lengths, types and checksums. */
export async function* chunksOf(source: ByteSource): AsyncGenerator<Chunk> {
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

/** A picture of the pixels of a frame, with the colours of the file. */
export async function pictureOfFrame(
  source: ByteSource,
  frame: { readonly control: Buffer; readonly shared: readonly Chunk[]; readonly pixels: readonly Chunk[] },
): Promise<PlacedFrame | null> {
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
  // The number of such a chunk precedes its pixels.
  for (const { type, start, end } of pixels)
    chunks.push(encoded('IDAT', await read({ start: type === 'fdAT' ? start + 4 : start, end })))
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
