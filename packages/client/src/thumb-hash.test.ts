import { inflateSync } from 'node:zlib'
import { rgbaToThumbHash, thumbHashToApproximateAspectRatio, thumbHashToRGBA } from 'thumbhash'
import { expect, test } from 'vitest'
import { thumbHashPixels, thumbHashUrl } from './thumb-hash.ts'

/** The ThumbHash of a picture whose pixels follow from a seed. */
function hashOf(width: number, height: number, seed: number, isTransparent: boolean): Uint8Array {
  const rgba = new Uint8Array(width * height * 4)
  let state = seed
  for (let at = 0; at < rgba.length; at += 1) {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648
    rgba[at] = at % 4 === 3 ? (isTransparent ? state % 256 : 255) : (state + at) % 256
  }
  return rgbaToThumbHash(width, height, rgba)
}

const base64 = (bytes: Uint8Array) => btoa(String.fromCharCode(...bytes))

const shapes = [
  [100, 100],
  [100, 40],
  [40, 100],
  [100, 9],
  [7, 90],
] as const

test.each(shapes.flatMap(([width, height]) => [false, true].map((alpha) => ({ width, height, alpha }))))(
  'V13 the placeholder of a picture of $width × $height (opacity: $alpha) has the pixels of the library thumbhash',
  ({ width, height, alpha }) => {
    for (let seed = 1; seed <= 20; seed += 1) {
      const hash = hashOf(width, height, seed, alpha)
      const expected = thumbHashToRGBA(hash)
      const pixels = thumbHashPixels(base64(hash))
      expect([seed, pixels?.width, pixels?.height]).toEqual([seed, expected.w, expected.h])
      const distances = [...expected.rgba].map((value, at) => Math.abs(value - (pixels?.rgba[at] ?? 0)))
      expect(Math.max(...distances)).toBeLessThanOrEqual(1)
    }
  },
)

test('V13 the URL of a placeholder is a PNG of its proportions with its pixels', () => {
  const hash = hashOf(100, 40, 3, true)
  const png = Buffer.from(thumbHashUrl(base64(hash))?.split(',')[1] ?? '', 'base64')
  const [width, height] = [png.readUInt32BE(16), png.readUInt32BE(20)]
  expect(width).toBe(16)
  expect(height).toBe(Math.round(16 / thumbHashToApproximateAspectRatio(hash)))
  const start = png.indexOf('IDAT') + 4
  const lines = inflateSync(png.subarray(start, start + png.readUInt32BE(start - 8)))
  expect(lines.length).toBe((width * 4 + 1) * height)
  expect([...lines.subarray(1, 9)]).toEqual([
    ...(thumbHashPixels(base64(hash), 16)?.rgba.subarray(0, 8) ?? []),
  ])
})

test.each(['', 'AAAA', '!', '%%%%', 'AAAAAAA='])(
  'a text that is no ThumbHash has no placeholder: %j',
  (text) => {
    expect(thumbHashUrl(text)).toBeNull()
  },
)
