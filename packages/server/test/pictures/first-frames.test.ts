import { crc32, deflateSync } from 'node:zlib'
import sharp from 'sharp'
import { afterAll, expect, test } from 'vitest'
import { PictureWorkers } from '../../src/pictures/picture-workers.ts'

const limits = { workers: 1, queue: 10, queueTimeout: 60_000, timeout: 60_000, memory: 1e9, niceness: 0 }
const workers = new PictureWorkers(limits)
afterAll(() => workers.close())

type Colour = readonly [number, number, number]
const [red, blue, nothing] = [
  [200, 40, 40, 255],
  [40, 60, 180, 255],
  [0, 0, 0, 0],
]
const redColour: Colour = [200, 40, 40]
const blueColour: Colour = [40, 60, 180]

/** The colours of the upper left and of the lower right pixel of a variant. */
async function shownOf(picture: Uint8Array) {
  const form = { width: 400, height: 400, fit: 'contain', format: 'webp' } as const
  const recorded = { thumbhash: null, width: null, height: null }
  const result = await workers.run(
    { type: 'resize', picture, form, maxPixels: 1e6, recorded, extraction: null },
    'a',
  )
  if (result.outcome !== 'resized') return result.outcome
  const { data, info } = await sharp(result.bytes).ensureAlpha().raw().toBuffer({ resolveWithObject: true })
  const at = (pixel: number) => [...data.subarray(pixel * 4, pixel * 4 + 4)]
  const { width, height } = result.preview ?? {}
  return {
    size: [info.width, info.height],
    recorded: [width, height],
    first: at(0),
    last: at(info.width * info.height - 1),
  }
}

const close = (colour: readonly number[]) => colour.map((value) => expect.closeTo(value, -1))

interface Frame {
  readonly left: number
  readonly top: number
  readonly width: number
  readonly height: number
}

const u16 = (value: number) => Buffer.of(value & 255, value >> 8)

/** A GIF of 40 × 30 pixels with these frames in one colour each: red, then blue. Its table of colours belongs to the file or to each frame. */
function gifOf(frames: readonly Frame[], hasOwnColours: boolean): Buffer {
  const table = Buffer.from([...redColour, ...blueColour])
  const [shared, own] = hasOwnColours ? [Buffer.alloc(0), table] : [table, Buffer.alloc(0)]
  const image = ({ left, top, width, height }: Frame, index: number) => {
    // Codes of three bits: clear before each pixel, so that the codes keep their length.
    const bits = Array.from({ length: width * height }, () => [4, index]).flat()
    let text = [...bits, 5]
      .map((code) => code.toString(2).padStart(3, '0').split('').reverse().join(''))
      .join('')
    text = text.padEnd(Math.ceil(text.length / 8) * 8, '0')
    const bytes = Buffer.from(
      (text.match(/.{8}/g) ?? []).map((byte) => Number.parseInt(byte.split('').reverse().join(''), 2)),
    )
    const blocks = Array.from({ length: Math.ceil(bytes.length / 255) }, (_, at) => {
      const block = bytes.subarray(at * 255, (at + 1) * 255)
      return Buffer.concat([Buffer.of(block.length), block])
    })
    return Buffer.concat([
      Buffer.from('21f904000a000000', 'hex'),
      ...[Buffer.of(0x2c), u16(left), u16(top), u16(width), u16(height), Buffer.of(hasOwnColours ? 0x80 : 0)],
      ...[own, Buffer.of(2), ...blocks, Buffer.of(0)],
    ])
  }
  return Buffer.concat([
    Buffer.from('GIF89a'),
    ...[u16(40), u16(30), Buffer.of(hasOwnColours ? 0 : 0x80, 0, 0), shared],
    ...[...frames.map(image), Buffer.of(0x3b)],
  ])
}

const whole = { left: 0, top: 0, width: 40, height: 30 }

test.each([
  ['covers a part', { left: 0, top: 0, width: 20, height: 10 }, red, nothing],
  ['covers another part', { left: 20, top: 20, width: 20, height: 10 }, nothing, red],
  ['covers it', whole, red, red],
])(
  'V2 the first frame of a GIF that %s of the canvas is shown on a transparent one',
  async (_, frame, first, last) => {
    for (const hasOwnColours of [false, true])
      for (const more of [[], [whole]]) {
        const shown = await shownOf(gifOf([frame, ...more], hasOwnColours))
        expect(shown).toEqual({ size: [40, 30], recorded: [40, 30], first: close(first), last: close(last) })
      }
  },
)

function chunk(type: string, data: Buffer): Buffer {
  const named = Buffer.concat([Buffer.from(type), data])
  return Buffer.concat([u32(data.length), named, u32(crc32(named))])
}
const u32 = (...values: readonly number[]) => {
  const bytes = Buffer.alloc(values.length * 4)
  for (const [index, value] of values.entries()) bytes.writeUInt32BE(value, index * 4)
  return bytes
}
const pixels = ({ width, height }: Frame, colour: Colour) => {
  const row = Buffer.concat([Buffer.of(0), ...Array.from({ length: width }, () => Buffer.from(colour))])
  return deflateSync(Buffer.concat(Array.from({ length: height }, () => row)))
}

/** An animated PNG of 40 × 30 pixels: the default picture is blue, and its frames are red. */
function apngOf(frame: Frame, { isDefaultFrame = false, split = 1 } = {}): Buffer {
  const control = (number: number, { width, height, left, top }: Frame) =>
    chunk('fcTL', Buffer.concat([u32(number, width, height, left, top), Buffer.of(0, 1, 0, 10, 0, 0)]))
  const data = pixels(frame, redColour)
  const part = Math.ceil(data.length / split)
  const parts = Array.from({ length: split }, (_, index) => data.subarray(index * part, (index + 1) * part))
  const first = isDefaultFrame ? 1 : 0
  return Buffer.concat([
    Buffer.from('\x89PNG\r\n\x1a\n', 'latin1'),
    chunk('IHDR', Buffer.concat([u32(40, 30), Buffer.of(8, 2, 0, 0, 0)])),
    chunk('acTL', u32(2, 0)),
    ...(isDefaultFrame ? [control(0, whole)] : []),
    chunk('IDAT', pixels(whole, blueColour)),
    control(first, frame),
    ...parts.map((bytes, index) => chunk('fdAT', Buffer.concat([u32(first + 1 + index), bytes]))),
    control(first + 1 + split, frame),
    chunk('fdAT', Buffer.concat([u32(first + 2 + split), pixels(frame, blueColour)])),
    chunk('IEND', Buffer.alloc(0)),
  ])
}

test.each([
  ['all of the canvas', whole, red, red],
  ['a part of it', { left: 0, top: 0, width: 20, height: 10 }, red, nothing],
  ['its end', { left: 20, top: 20, width: 20, height: 10 }, nothing, red],
])(
  'V2 the first frame of an animated PNG whose default picture is no frame is shown, which covers %s',
  async (_, frame, first, last) => {
    for (const split of [1, 3]) {
      const shown = await shownOf(apngOf(frame, { split }))
      expect(shown).toEqual({ size: [40, 30], recorded: [40, 30], first: close(first), last: close(last) })
    }
  },
)

test('V2 the default picture of an animated PNG is shown if it is the first frame, or if the frames are damaged', async () => {
  const blueShown = { first: close(blue), last: close(blue) }
  expect(await shownOf(apngOf(whole, { isDefaultFrame: true }))).toMatchObject(blueShown)
  const sent = apngOf(whole)
  expect(await shownOf(sent.subarray(0, sent.indexOf('fcTL') - 4))).toMatchObject(blueShown)
  expect(await shownOf(apngOf({ ...whole, left: 1 }))).toMatchObject(blueShown)
})
