import type { Client, Media } from '@mediabucket/client'
import { expect, test, vi } from 'vitest'
import type { Connection } from '../src/service/connection.ts'
import { createMediaCache } from '../src/service/media-cache.ts'

const item = (url: string): Media => ({
  ...{ id: 'a', url, filename: null, content_type: 'text/plain', size: 1, sha256: '00' },
  ...{ created_at: '', width: null, height: null, variants: null },
})

/** A cache of which each request gets the next URL. */
function cacheOf(base: string) {
  let requests = 0
  const client = {
    describe: async () => {
      requests += 1
      return item(`${base}${requests}`)
    },
  } as Partial<Client> as Client
  const connection = { watch: (request) => request() } as Partial<Connection> as Connection
  const clock = vi.spyOn(performance, 'now').mockReturnValue(0)
  const cache = createMediaCache(client, connection, () => undefined)
  return { cache, clock, urls: async () => (await cache.load('a'))?.url }
}

test('G23 signed URLs are renewed long before they expire, and other items are loaded once', async () => {
  const signed = cacheOf('/media/a?signature=')
  expect([await signed.urls(), await signed.urls()]).toEqual(['/media/a?signature=1', '/media/a?signature=1'])
  signed.clock.mockReturnValue(4.9 * 60_000)
  expect(await signed.urls()).toBe('/media/a?signature=1')
  signed.clock.mockReturnValue(5 * 60_000)
  expect(await signed.urls()).toBe('/media/a?signature=2')
  const plain = cacheOf('/media/a?')
  expect(await plain.urls()).toBe('/media/a?1')
  plain.clock.mockReturnValue(1e9)
  expect(await plain.urls()).toBe('/media/a?1')
})

test('G23 a signed URL that failed is renewed at once; one of a public bucket is not', async () => {
  const { cache, urls } = cacheOf('/media/a?signature=')
  const failed = item((await urls()) ?? '')
  const renewals = await Promise.all([cache.renew(failed), cache.renew(failed)])
  expect(renewals.map((media) => media?.url)).toEqual(Array(2).fill('/media/a?signature=2'))
  expect((await cache.renew(failed))?.url).toBe('/media/a?signature=2')
  expect(await cacheOf('/media/a?').cache.renew(item('/media/a'))).toBeNull()
})

test('G23 a list with other signed URLs changes those of a shown item only when they are renewed', () => {
  const { cache, clock } = cacheOf('/media/a?signature=')
  cache.put(item('/media/a?signature=x'))
  cache.put({ ...item('/media/a?signature=y'), caption: 'new' })
  expect(cache.get('a').value).toMatchObject({ url: '/media/a?signature=x', caption: 'new' })
  clock.mockReturnValue(5 * 60_000)
  cache.put(item('/media/a?signature=z'))
  expect(cache.get('a').value?.url).toBe('/media/a?signature=z')
})

test('M5 an edited item is not replaced by responses to earlier requests, and not by lists', async () => {
  const { cache, clock } = cacheOf('/media/a?')
  const checked = cache.check('a')
  clock.mockReturnValue(1)
  cache.putEdited({ ...item('/media/a'), filename: 'new' })
  await checked
  cache.put(item('/media/a'))
  expect(cache.get('a').value?.filename).toBe('new')
  clock.mockReturnValue(2)
  await cache.check('a')
  expect(cache.get('a').value?.filename).toBeNull()
})
