import { gunzipSync } from 'node:zlib'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { newItemId } from '../../src/core/ids.ts'
import { type PageSettings, pageObject } from '../../src/core/page.ts'
import { compressedChunkPages, PageLinkCache } from '../../src/listing/page-link-cache.ts'
import { listPageOperation } from '../../src/listing/pages.ts'
import type { BucketId, PageRows } from '../../src/storage/catalog/records.ts'

const bucketId = 1 as BucketId
const items = Array.from({ length: 10 }, (_, index) => ({
  id: newItemId(),
  extension: index % 3 === 0 ? null : 'jpg',
}))

/** A catalog with one bucket of `total` items. These tests check the text of pages, not their items. */
function bucketOf(total: number) {
  const pages: number[] = []
  const page = async (_bucket: BucketId, number: number): Promise<PageRows> => {
    pages.push(number)
    const rows = items.slice(0, Math.max(0, Math.min(10, total - (number - 1) * 10)))
    return { revision: 7, expired: 0, total, rows }
  }
  return { page, pages }
}

const forms = fc.record({
  baseUrl: fc.constantFrom('http://127.0.0.1:8080', 'https://media.example.org/a/b', 'http://[::1]:1'),
  extensions: fc.boolean(),
  links: fc.constantFrom('all', 'all', 'window'),
})
// Totals and pages near the edges of chunks of links, where an off-by-one error would show.
const edge = compressedChunkPages * 10
const totals = fc.oneof(
  fc.integer({ min: 0, max: 200 }),
  fc
    .tuple(fc.integer({ min: 1, max: 5 }), fc.integer({ min: -15, max: 15 }))
    .map(([n, off]) => n * edge + off),
  fc.integer({ min: 0, max: 120_000 }),
)
const pages = fc.oneof(
  fc
    .tuple(fc.integer({ min: 0, max: 5 }), fc.integer({ min: -2, max: 2 }))
    .map(([n, off]) => Math.max(1, n * compressedChunkPages + off)),
  fc.integer({ min: 1, max: 13_000 }),
)

const plainly = (
  urls: PageSettings,
  envelope: string,
  page: number,
  total: number,
  rows: PageRows['rows'],
) => {
  const object = pageObject(urls, page, total, rows)
  return JSON.stringify(envelope === 'wrapped' ? { data: object } : object)
}

test('L2, L7, L9, L15 the rendered page equals JSON.stringify byte for byte, with every setting and coding', async () => {
  await fc.assert(
    fc.asyncProperty(
      forms,
      fc.constantFrom('bare' as const, 'wrapped' as const),
      totals,
      pages,
      fc.constantFrom(0, 100_000, 64_000_000),
      async (urls, envelope, total, page, memory) => {
        const catalog = bucketOf(total)
        const pageLinkCache = new PageLinkCache(urls.baseUrl, memory)
        const list = listPageOperation({ catalog, urls, envelope, pageLinkCache, cacheSize: memory })
        const expected = plainly(urls, envelope, page, total, (await catalog.page(bucketId, page)).rows)
        // The last one of each coding is in the cache.
        for (const gzip of [false, true, true, false, false, true, true, false]) {
          const { body, coding } = await list({ bucketId, state: '7' }, page, gzip)
          const bytes = Buffer.concat([...body.chunks()])
          expect(bytes.length).toBe(body.length)
          expect((coding === 'gzip' ? gunzipSync(bytes) : bytes).toString() === expected).toBe(true)
        }
        expect(pageLinkCache.size()).toBeLessThanOrEqual(memory * 1.1)
      },
    ),
    { numRuns: 150 },
  )
})

test('L4 a page cached for one state is not returned for another', async () => {
  const catalog = bucketOf(30)
  const urls = { baseUrl: 'http://h', extensions: true, links: 'all' } as const
  const pageLinkCache = new PageLinkCache(urls.baseUrl, 1000)
  const list = listPageOperation({ catalog, urls, envelope: 'bare', pageLinkCache, cacheSize: 1_000_000 })
  for (let requests = 0; requests < 5; requests += 1) await list({ bucketId, state: '7' }, 2, false)
  expect(catalog.pages).toEqual([2, 2, 2])
  await list({ bucketId, state: '8' }, 2, false)
  expect(catalog.pages).toEqual([2, 2, 2, 2])
})

/** Lists pages of a bucket with 200,000 items; a cache of 5 MB holds about 2,000 of them. */
function listingOfLargeBucket() {
  const catalog = bucketOf(200_000)
  const urls = { baseUrl: 'http://h', extensions: true, links: 'window' } as const
  const pageLinkCache = new PageLinkCache(urls.baseUrl, 1000)
  const list = listPageOperation({ catalog, urls, envelope: 'bare', pageLinkCache, cacheSize: 5_000_000 })
  const request = (page: number) => list({ bucketId, state: '7' }, page, false)
  const requestAll = async (count: number) => {
    for (let page = 1; page <= count; page += 1) await request(page)
  }
  return { catalog, request, requestAll }
}

test('a page is cached at its third request, and reading a whole bucket does not evict it', async () => {
  const { catalog, request, requestAll } = listingOfLargeBucket()
  for (const isCached of [false, false, true, true]) expect(await request(5)).toMatchObject({ isCached })
  await requestAll(20_000)
  catalog.pages.length = 0
  await request(5)
  expect(catalog.pages).toEqual([])
})

test('pages that are requested in turn are all cached, if the cache can hold them', async () => {
  const { catalog, requestAll } = listingOfLargeBucket()
  for (let round = 0; round < 3; round += 1) await requestAll(1_000)
  catalog.pages.length = 0
  await requestAll(1_000)
  expect(catalog.pages).toEqual([])
})

test('a page of a large bucket compresses to a tenth, and the page-link cache does not grow for later pages', async () => {
  const urls = { baseUrl: 'http://127.0.0.1:8080', extensions: true, links: 'all' } as const
  const pageLinkCache = new PageLinkCache(urls.baseUrl, 64_000_000)
  const list = listPageOperation({
    catalog: bucketOf(1_000_000),
    urls,
    envelope: 'bare',
    pageLinkCache,
    cacheSize: 0,
  })
  const plain = await list({ bucketId, state: '7' }, 500, false)
  const gzip = await list({ bucketId, state: '7' }, 500, true)
  expect(gzip.body.length).toBeLessThan(plain.body.length / 10)
  const [sizeBefore] = [pageLinkCache.size(), [...plain.body.chunks()]]
  await list({ bucketId, state: '7' }, 70_000, true)
  expect(pageLinkCache.size() - sizeBefore).toBeLessThan(100_000)
})

test('bytes of a cached page that are not in the page-link cache count as its own', async () => {
  const urls = { baseUrl: 'http://127.0.0.1:8080', extensions: true, links: 'all' } as const
  const pageLinkCache = new PageLinkCache(urls.baseUrl, 0)
  const list = listPageOperation({
    catalog: bucketOf(100_000),
    urls,
    envelope: 'bare',
    pageLinkCache,
    cacheSize: 0,
  })
  const { body } = await list({ bucketId, state: '7' }, 5000, true)
  expect(body.own).toBeGreaterThan(body.length * 0.95)
})
