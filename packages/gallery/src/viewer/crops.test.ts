import type { Media } from '@mediabucket/client'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { cropsOf, positionIn } from './crops.ts'

const side = fc.integer({ min: 1, max: 5000 })
const dimensions = fc.record({ width: side, height: side })
const share = fc.integer({ min: 0, max: 10_000 }).map((value) => value / 10_000)

/** What a `cover` size makes of a picture: the scaled picture, and the part of it that is shown. */
function coverOf(size: { width: number; height: number }, picture: { width: number; height: number }) {
  const scale = Math.min(1, Math.max(size.width / picture.width, size.height / picture.height))
  const scaled = (length: number) => Math.max(1, Math.round(length * scale))
  const [width, height] = [scaled(picture.width), scaled(picture.height)]
  return {
    scaled: { width, height },
    crop: { width: Math.min(size.width, width), height: Math.min(size.height, height) },
  }
}

test('G46, M11 a crop is shown where the service cuts it', () => {
  fc.assert(
    fc.property(dimensions, dimensions, share, share, (size, picture, x, y) => {
      const { scaled, crop } = coverOf(size, picture)
      const start = (of: number, whole: number, part: number) =>
        Math.max(0, Math.min(whole - part, Math.round(of * whole - part / 2)))
      const shares = positionIn(crop, picture, { x, y }).split(' ').map(Number.parseFloat)
      const differences = [
        (scaled.width - crop.width) * ((shares[0] ?? 0) / 100) - start(x, scaled.width, crop.width),
        (scaled.height - crop.height) * ((shares[1] ?? 0) / 100) - start(y, scaled.height, crop.height),
      ]
      // A pixel for each rounding, and a tenth of a percent.
      const allowed = 2 + Math.max(scaled.width, scaled.height) / 1000
      for (const difference of differences) expect(Math.abs(difference)).toBeLessThanOrEqual(allowed)
    }),
  )
})

const media: Media = {
  ...{ id: 'a', url: '/media/a', filename: 'a.jpg', content_type: 'image/jpeg', size: 1, sha256: '00' },
  ...{ created_at: '', width: 1501, height: 1000 },
}

test('G46 the variants that cut a picture are listed, and no others', () => {
  const variant_sizes = {
    thumb: { width: 400, height: 266 },
    medium: { width: 1501, height: 1000 },
    card: { width: 640, height: 360 },
    '320': { width: 320, height: 213 },
  }
  expect(cropsOf({ ...media, variant_sizes })).toEqual([{ name: 'card', width: 640, height: 360 }])
  expect(cropsOf({ ...media, variant_sizes, width: null, height: null })).toEqual([])
  expect(cropsOf(media)).toEqual([])
})
