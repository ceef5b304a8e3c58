import { expect, test } from 'vitest'
import { createTimestampFormat, mediaObjectOf } from '../../src/items/items.ts'
import { newItem } from '../storage/catalog/samples.ts'
import { temporaryData } from '../uploads/temporary-media.ts'

test('M1: a media object has these members, with a hex hash, a UTC time and an absolute URL', async () => {
  await using data = await temporaryData()
  const item = {
    ...(await data.store('')),
    extension: 'txt',
    filename: 'ä.txt',
    createdAt: 1_700_000_000_123,
  }
  expect(mediaObjectOf({ baseUrl: 'https://media.example', extensions: true }, item)).toEqual({
    id: item.id,
    url: `https://media.example/media/${item.id}.txt`,
    filename: 'ä.txt',
    content_type: 'application/octet-stream',
    size: 0,
    sha256: 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855',
    created_at: '2023-11-14T22:13:20.123Z',
    expires_at: null,
    width: null,
    height: null,
    thumbhash: null,
    duration: null,
    alt_text: null,
    caption: null,
    labels: {},
    path: null,
    taken_at: null,
    variants: null,
    variant_sizes: null,
  })
  const described = mediaObjectOf({ baseUrl: 'https://media.example', extensions: false }, item)
  expect(described.url).toBe(`https://media.example/media/${item.id}`)
})

test.each([
  ['image/png', 'png', true],
  ['image/svg+xml', 'svg', false],
  ['video/mp4', 'mp4', false],
])('M1, V3: an item of the type %s has the URLs of its variants, or null', (contentType, extension, has) => {
  const url = (id: string) => `https://files.example/media/${id}.${extension}`
  const item = newItem({ contentType, extension })
  const settings = {
    baseUrl: 'https://media.example',
    mediaBaseUrl: 'https://files.example',
    extensions: true,
  }
  expect(mediaObjectOf(settings, item).variants).toEqual(
    has ? { thumb: `${url(item.id)}?variant=thumb`, medium: `${url(item.id)}?variant=medium` } : null,
  )
})

test('M1 a time is formatted as RFC 3339, after the same one and after another one', () => {
  const times = [0, 1_790_000_000_000, 1_790_000_000_000, 1_790_000_000_001, 0]
  expect(times.map(createTimestampFormat())).toEqual(times.map((time) => new Date(time).toISOString()))
})
