import fc from 'fast-check'
import { expect, test } from 'vitest'
import { formatTimestamp } from '../../src/core/times.ts'
import { createSerializer } from '../../src/http/dispatcher.ts'
import { MediaObject } from '../../src/http/openapi/schemas.ts'
import { mediaObjectOf } from '../../src/items/item-operations.ts'
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
    focus: null,
    taken_at: null,
    variants: null,
    variant_sizes: null,
  })
  // They are written without a copy, because they have the members of the schema, in its order.
  const copied = createSerializer({ schema: MediaObject })
  const described = mediaObjectOf({ baseUrl: 'https://media.example', extensions: false }, item)
  expect(copied(described)).toBe(JSON.stringify(described))
  const picture = { ...item, contentType: 'image/png', width: 3, height: 2, labels: { album: '42' } }
  const pictured = mediaObjectOf({ baseUrl: 'https://media.example', extensions: false }, picture)
  expect(copied(pictured)).toBe(JSON.stringify(pictured))
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

test('M1 a time is formatted as RFC 3339, after one of the same day and after another one', () => {
  const day = 86_400_000
  const times = fc.date({
    min: new Date('0000-01-01T00:00:00Z'),
    max: new Date('9999-12-31T23:59:59.999Z'),
    noInvalidDate: true,
  })
  fc.assert(
    fc.property(times, fc.nat(day - 1), (time, later) => {
      const midnight = Math.floor(time.getTime() / day) * day
      for (const at of [time.getTime(), midnight, midnight + later])
        expect(formatTimestamp(at)).toBe(new Date(at).toISOString())
    }),
  )
})
