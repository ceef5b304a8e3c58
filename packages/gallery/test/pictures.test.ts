import type { Media } from '@mediabucket/client'
import sharp from 'sharp'
import { beforeEach, expect, test, vi } from 'vitest'
import { animatedPng } from '../../../test/harness/animated-png.ts'
import { mediaIdOf } from '../src/service/urls.ts'
import { moves } from '../src/viewer/moving-files.ts'
import { pictureSlide } from '../src/viewer/picture-slide.ts'

beforeEach(() => {
  vi.stubGlobal('document', { baseURI: 'https://proxy.example/box/#page=2' })
  return () => vi.unstubAllGlobals()
})

const media = (about: Partial<Media>): Media => ({
  id: '2v8d',
  url: 'http://inside:8080/media/2v8d.jpg',
  filename: 'x.jpg',
  content_type: 'image/jpeg',
  size: 1,
  sha256: '00',
  created_at: '2026-01-01T00:00:00Z',
  width: 4000,
  height: 3000,
  ...about,
})

test.each([
  ['http://127.0.0.1:8080/media/2v8d0q3h.jpg', '2v8d0q3h'],
  ['https://x.example/box/media/2v8d0q3h', '2v8d0q3h'],
  ['https://x.example/elsewhere', ''],
])('the id in %s is %j', (url, id) => {
  expect(mediaIdOf(url)).toBe(id)
})

test('G5 pictures are loaded from the page’s own origin, whatever host the listing names', () => {
  const slide = pictureSlide(media({}), 'x', [])
  expect(slide.src).toBe('https://proxy.example/box/media/2v8d')
  expect(slide.srcset).toBe(
    'https://proxy.example/box/media/2v8d?variant=medium 1600w, https://proxy.example/box/media/2v8d 4000w',
  )
})

test('the original is loaded if the picture is small, of unknown size, or may be animated', () => {
  for (const about of [
    { width: 1600, height: 1200 },
    { width: null, height: null },
    { content_type: 'image/gif' },
  ])
    expect(pictureSlide(media(about), 'x', [])).not.toHaveProperty('srcset')
})

test('pictures of types that browsers do not display are loaded as the medium variant', () => {
  expect(pictureSlide(media({ content_type: 'image/tiff' }), 'x', []).src).toMatch(/\?variant=medium$/)
})

const gif = media({
  content_type: 'image/gif',
  variants: { thumb: '', medium: '' },
  variant_sizes: {
    thumb: { width: 400, height: 300 },
    medium: { width: 1600, height: 1200 },
    small: { width: 320, height: 240 },
    large: { width: 1024, height: 768 },
    cut: { width: 2000, height: 1000 },
  },
})

test('G47 a picture that may be animated is loaded in the widest size that keeps movement and all of it', () => {
  const original = 'https://proxy.example/box/media/2v8d'
  const slide = (sizes: string[], about: Media = gif) => pictureSlide(about, 'x', sizes)
  expect(slide(['small', 'large', 'cut', 'gone']).srcset).toBe(
    `${original}?variant=large 1024w, ${original} 4000w`,
  )
  expect(slide(['large', 'small'], { ...gif, width: 800, height: 600 }).srcset).toMatch(/variant=small 320w/)
  expect(slide(['cut'])).not.toHaveProperty('srcset')
})

const framesOf = (count: number, noise = 0) => {
  const pixels = Buffer.alloc(32 * 32 * 3 * count)
  for (let at = 0; at < pixels.length; at += 1)
    pixels[at] = Math.floor(at / (32 * 32 * 3)) * 60 + (noise && (at * 7_919) % noise)
  return sharp(pixels, { raw: { width: 32, height: 32 * count, channels: 3, pageHeight: 32 } })
}
const svg = (content: string) =>
  new TextEncoder().encode(`<svg xmlns="http://www.w3.org/2000/svg">${content}</svg>`)
const boxOf = (brands: string) =>
  Buffer.concat([Buffer.from([0, 0, 0, 8 + brands.length]), Buffer.from(`ftyp${brands}`)])

test.each<[string, boolean, string, () => Uint8Array | Promise<Uint8Array>]>([
  ['a GIF', false, 'image/gif', () => framesOf(1, 250).gif().toBuffer()],
  ['a GIF', true, 'image/gif', () => framesOf(3, 250).gif().toBuffer()],
  ['a WebP', false, 'image/webp', () => framesOf(1).webp().toBuffer()],
  ['a WebP with transparency', false, 'image/webp', () => framesOf(1).ensureAlpha(0.5).webp().toBuffer()],
  ['a WebP', true, 'image/webp', () => framesOf(3).webp().toBuffer()],
  ['a PNG', false, 'image/png', () => framesOf(1).png().toBuffer()],
  ['a PNG with a profile', false, 'image/png', () => framesOf(1).withIccProfile('p3').png().toBuffer()],
  ['a PNG', true, 'image/apng', () => animatedPng([50, 50], 0)],
  ['an AVIF', false, 'image/avif', () => framesOf(1).avif().toBuffer()],
  ['an AVIF', true, 'image/avif', () => boxOf('avis\0\0\0\0avifavismsf1')],
  ['a drawing', false, 'image/svg+xml', () => svg('<rect width="9" height="9" fill="red"/>')],
  [
    'a drawing',
    true,
    'image/svg+xml',
    () => svg('<rect><animate attributeName="x" to="9" dur="1s"/></rect>'),
  ],
  ['a drawing', true, 'image/svg+xml', () => svg('<style>rect { animation: turn 1s infinite }</style>')],
])('G47 %s moves: %o, by its head', async (_, expected, type, create) => {
  const bytes = await create()
  expect(moves(type, bytes, true)).toBe(expected)
  // What a head does not tell, may move: a picture that moves is never taken for one that does not.
  for (let length = 0; length < bytes.length; length += 1)
    if (
      expected &&
      (length > 24 || type === 'image/gif' || type === 'image/apng' || type === 'image/svg+xml')
    )
      expect([length, moves(type, bytes.subarray(0, length), false)]).toEqual([length, true])
})
