import { expect, test } from 'vitest'
import { type PictureMedia, pictureOf, sourcesOf, withWidth } from './pictures.ts'

const url = 'https://media.example.org/media/id.jpg'

/** A picture of 3000 × 2000 with the default sizes, and one that is cut. */
const media: PictureMedia = {
  url,
  filename: 'harbour.jpg',
  content_type: 'image/jpeg',
  width: 3000,
  height: 2000,
  alt_text: null,
  thumbhash: null,
  variants: { thumb: `${url}?variant=thumb`, medium: `${url}?variant=medium`, card: `${url}?variant=card` },
  variant_sizes: {
    thumb: { width: 400, height: 267 },
    medium: { width: 1600, height: 1067 },
    card: { width: 640, height: 360 },
  },
}

test('V1 srcset has the sizes that show the whole picture, each width once, and src is the widest', () => {
  expect(pictureOf(media)).toEqual({
    src: `${url}?variant=medium`,
    srcset: `${url}?variant=thumb 400w, ${url}?variant=medium 1600w`,
    still: null,
    width: 3000,
    height: 2000,
    alt: 'harbour.jpg',
    placeholder: null,
    objectPosition: null,
  })
  expect(pictureOf(media, { variants: ['thumb'] })).toMatchObject({
    src: `${url}?variant=thumb`,
    srcset: null,
  })
  expect(pictureOf(media, { still: 'card' })?.still).toBe(`${url}?variant=card`)
  expect(pictureOf(media, { still: 'gone' })?.still).toBeNull()
  const [size, small] = [
    { width: 60, height: 40 },
    { ...media, width: 60, height: 40 },
  ]
  expect(pictureOf({ ...small, variant_sizes: { thumb: size, medium: size, card: size } })).toMatchObject({
    srcset: null,
  })
})

test.each([
  [1, 3000],
  [3000, 1],
  [7, 4001],
  [4001, 7],
])('V1 a picture of %i × %i has the sizes into which it fits', (width, height) => {
  const within = (side: number) => {
    const scale = Math.min(1, side / width, side / height)
    return { width: Math.max(1, Math.round(width * scale)), height: Math.max(1, Math.round(height * scale)) }
  }
  const variant_sizes = { thumb: within(400), medium: within(1600) }
  const picture = pictureOf({ ...media, width, height, variant_sizes })
  expect(picture?.src).toMatch(/variant=(medium|thumb)$/)
})

test('the alternative text, the focus and the placeholder are those of the item', () => {
  const picture = pictureOf({
    ...media,
    alt_text: 'The harbour',
    focus: { x: 0.25, y: 1 / 3 },
    thumbhash: '1QcSHQRnh493V4dIh4eXh1h4kJUI',
  })
  expect(picture).toMatchObject({ alt: 'The harbour', objectPosition: '25% 33.33%' })
  expect(picture?.placeholder).toMatch(/^data:image\/png;base64,/)
  expect(pictureOf({ ...media, alt_text: '' })?.alt).toBe('')
})

test('V3, V8 items without a picture have none, and unknown dimensions no srcset', () => {
  const without = { ...media, variants: null, variant_sizes: null }
  expect(pictureOf({ ...without, content_type: 'application/zip' })).toBeNull()
  expect(pictureOf({ ...without, content_type: 'image/svg+xml' })?.src).toBe(url)
  expect(pictureOf({ ...media, width: null, height: null, variant_sizes: null })).toMatchObject({
    src: `${url}?variant=medium`,
    srcset: null,
  })
})

test('V18, H5 a width follows the parameters of a URL', () => {
  expect(withWidth(url, 640)).toBe(`${url}?w=640`)
  expect(withWidth(`${url}?expires=1&signature=a&variants=all`, 640)).toMatch(/variants=all&w=640$/)
  expect(sourcesOf(url, [1600, 400, 400])).toEqual({
    src: `${url}?w=1600`,
    srcset: `${url}?w=400 400w, ${url}?w=1600 1600w`,
  })
})
