import { crc32, deflateSync } from 'node:zlib'
import sharp from 'sharp'

type Colour = readonly [red: number, green: number, blue: number, opacity: number]

interface Part {
  readonly left: number
  readonly top: number
  readonly width: number
  readonly height: number
  readonly colour: Colour
  /** PNG 3, 11.3.6.2. */
  readonly disposal: 0 | 1 | 2
  readonly blend: 0 | 1
}

const side = 80
const whole = { left: 0, top: 0, width: side, height: side }
const [topHalf, middle] = [
  { ...whole, height: side / 2 },
  { left: 20, top: 20, width: 40, height: 40 },
]
const [red, blue, halfGreen, yellow]: readonly Colour[] = [
  [220, 20, 20, 255],
  [20, 20, 220, 255],
  [20, 220, 20, 128],
  [230, 230, 20, 255],
]

/** One after the other, with each way in which a frame is drawn and removed. */
const parts: readonly Part[] = [
  { ...whole, colour: red ?? [0, 0, 0, 0], disposal: 0, blend: 0 },
  { ...whole, width: side / 2, colour: blue ?? [0, 0, 0, 0], disposal: 2, blend: 0 },
  { ...topHalf, colour: halfGreen ?? [0, 0, 0, 0], disposal: 1, blend: 1 },
  { ...middle, colour: yellow ?? [0, 0, 0, 0], disposal: 0, blend: 1 },
]

/** An animated PNG of 80 × 80 pixels with four frames, which are shown for these milliseconds. */
export const animatedPng = (delays: readonly number[], loop: number): Buffer =>
  pngOfFrames({
    ...{ width: side, height: side, loop },
    frames: parts.map((part, index) => ({ ...part, delay: delays[index] ?? 0 })),
  })

/** An animated PNG of these frames. `shared` are chunks before the pixels. */
export function pngOfFrames({
  width,
  height,
  loop = 0,
  shared = [],
  frames,
}: {
  readonly width: number
  readonly height: number
  readonly loop?: number
  readonly shared?: readonly Buffer[]
  readonly frames: readonly (Part & { readonly delay: number })[]
}): Buffer {
  const header = Buffer.alloc(13)
  header.writeUInt32BE(width, 0)
  header.writeUInt32BE(height, 4)
  header.set([8, 6], 8)
  let sequence = 0
  const written = frames.flatMap((part, index) => {
    const { left, top, width, height, colour, disposal, blend, delay } = part
    const control = Buffer.alloc(26)
    for (const [at, value] of [sequence++, width, height, left, top].entries())
      control.writeUInt32BE(value, at * 4)
    control.writeUInt16BE(delay, 20)
    control.writeUInt16BE(1000, 22)
    control.set([disposal, blend], 24)
    const row = Buffer.concat([Buffer.of(0), ...Array.from({ length: width }, () => Buffer.from(colour))])
    const pixels = deflateSync(Buffer.concat(Array.from({ length: height }, () => row)))
    if (index === 0) return [pngChunk('fcTL', control), pngChunk('IDAT', pixels)]
    const number = Buffer.alloc(4)
    number.writeUInt32BE(sequence++)
    return [pngChunk('fcTL', control), pngChunk('fdAT', Buffer.concat([number, pixels]))]
  })
  const counts = Buffer.alloc(8)
  counts.writeUInt32BE(frames.length, 0)
  counts.writeUInt32BE(loop, 4)
  return Buffer.concat([
    Buffer.from('\x89PNG\r\n\x1a\n', 'latin1'),
    ...[pngChunk('IHDR', header), pngChunk('acTL', counts), ...shared],
    ...[...written, pngChunk('IEND', Buffer.alloc(0))],
  ])
}

export function pngChunk(type: string, data: Buffer): Buffer {
  const [length, sum] = [Buffer.alloc(4), Buffer.alloc(4)]
  const named = Buffer.concat([Buffer.from(type, 'latin1'), data])
  length.writeUInt32BE(data.byteLength)
  sum.writeUInt32BE(crc32(named))
  return Buffer.concat([length, named, sum])
}

/** What a viewer shows of a frame of animatedPng, composed by hand. */
export async function shownFrame(index: number): Promise<Buffer> {
  const layer = ({ width, height, left, top, colour: [r, g, b, opacity] }: Part) => ({
    input: { create: { width, height, channels: 4 as const, background: { r, g, b, alpha: opacity / 255 } } },
    ...{ left, top },
  })
  const [first, second, third, fourth] = parts
  if (!first || !second || !third || !fourth) throw new RangeError('four frames')
  const layers = [
    [layer(first)],
    [layer(first), layer(second)],
    // The second frame is removed, so that the first one is below.
    [layer(first), layer(third)],
    // The area of the third frame is cleared.
    [layer({ ...first, top: side / 2, height: side / 2 }), layer(fourth)],
  ]
  const background = { r: 0, g: 0, b: 0, alpha: 0 }
  return await sharp({ create: { width: side, height: side, channels: 4, background } })
    .composite(layers[index] ?? [])
    .png()
    .toBuffer()
}
