import sharp from 'sharp'
import { expect, test } from 'vitest'
import { animatedPng, pngChunk, pngOfFrames } from '../../../../test/harness/animated-png.ts'
import { animationLimits, readAnimation } from '../../src/pictures/animations.ts'

const dot = {
  left: 0,
  top: 0,
  width: 1,
  height: 1,
  colour: [9, 9, 9, 255],
  disposal: 0,
  blend: 0,
  delay: 10,
} as const
const dots = Array.from({ length: animationLimits.frames }, () => dot)

/** Reads an animation, and returns it with the sizes of the pictures that were decoded. Bytes. */
async function read(picture: Buffer, secondsLeft: () => number = () => 60) {
  const decoded: number[] = []
  const counting = new Proxy(sharp, {
    apply(open, _, [input, options]: Parameters<typeof sharp>) {
      decoded.push(input instanceof Uint8Array ? input.byteLength : Number.NaN)
      return open(input, options)
    },
  })
  const animation = await readAnimation(counting, picture, animationLimits, secondsLeft)
  return { animation, decoded }
}

test('V20 nothing of an animated PNG whose frames together have too many pixels is decoded', async () => {
  for (const [width, height] of [
    [60_000, 60_000],
    [40_001, 2],
    [2 ** 31 - 1, 2 ** 31 - 1],
  ] as const) {
    const picture = pngOfFrames({ width, height, frames: dots })
    expect(picture.byteLength).toBeLessThan(60_000)
    expect(await read(picture)).toEqual({ animation: null, decoded: [] })
  }
})

test('V20 no frame of an animated PNG is decoded after its time', async () => {
  let left = 3
  const { animation, decoded } = await read(pngOfFrames({ width: 9, height: 9, frames: dots }), () => left--)
  expect([animation, decoded.length]).toEqual([null, 3])
})

test('V20 an animated GIF or WebP is not decoded without time', async () => {
  const frames = sharp(animatedPng([10, 10, 10, 10], 0))
  const raw = await frames.resize(8, 8).raw().toBuffer()
  const sheet = sharp(Buffer.concat([raw, Buffer.alloc(raw.length, 9)]), {
    raw: { width: 8, height: 16, channels: 4, pageHeight: 8 },
  })
  for (const picture of [await sheet.clone().gif().toBuffer(), await sheet.clone().webp().toBuffer()]) {
    expect((await read(picture)).animation?.frames).toHaveLength(2)
    expect(await read(picture, () => 0)).toMatchObject({ animation: null, decoded: [expect.any(Number)] })
  }
})

test('V20 texts and unknown chunks of an animated PNG are not read again for each frame', async () => {
  const shared = ['zTXt', 'prVt'].map((type) => pngChunk(type, Buffer.alloc(1_000_000)))
  const { animation, decoded } = await read(pngOfFrames({ width: 9, height: 9, shared, frames: dots }))
  expect(animation?.frames).toHaveLength(dots.length)
  expect(Math.max(...decoded)).toBeLessThan(200)
})
