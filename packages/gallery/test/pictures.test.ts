import type { Media } from '@mediabucket/client'
import { beforeEach, expect, test, vi } from 'vitest'
import { mediaIdOf } from '../src/service/urls.ts'
import { type Motion, pictureSlide } from '../src/viewer/picture-slide.ts'

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

const moving: Motion = { isReduced: false, sizes: [] }

test.each([
  ['http://127.0.0.1:8080/media/2v8d0q3h.jpg', '2v8d0q3h'],
  ['https://x.example/box/media/2v8d0q3h', '2v8d0q3h'],
  ['https://x.example/elsewhere', ''],
])('the id in %s is %j', (url, id) => {
  expect(mediaIdOf(url)).toBe(id)
})

test('G5 pictures are loaded from the page’s own origin, whatever host the listing names', () => {
  const slide = pictureSlide(media({}), 'x', moving)
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
    expect(pictureSlide(media(about), 'x', moving)).not.toHaveProperty('srcset')
})

test('pictures of types that browsers do not display are loaded as the medium variant', () => {
  expect(pictureSlide(media({ content_type: 'image/tiff' }), 'x', moving).src).toMatch(/\?variant=medium$/)
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
  const slide = (sizes: string[], about: Media = gif) => pictureSlide(about, 'x', { isReduced: false, sizes })
  expect(slide(['small', 'large', 'cut', 'gone']).srcset).toBe(
    `${original}?variant=large 1024w, ${original} 4000w`,
  )
  expect(slide(['large', 'small'], { ...gif, width: 800, height: 600 }).srcset).toMatch(/variant=small 320w/)
  expect(slide(['cut'])).not.toHaveProperty('srcset')
})

test('G47 with reduced motion, a GIF is loaded as its first frame', () => {
  const slide = (about: Media) => pictureSlide(about, 'x', { isReduced: true, sizes: ['large'] })
  expect(slide(gif)).toMatchObject({ src: expect.stringMatching(/variant=medium$/) })
  expect(slide(gif)).not.toHaveProperty('srcset')
  expect(slide({ ...gif, content_type: 'image/png' }).srcset).toMatch(/variant=large/)
})
