import { LRUCache } from 'lru-cache'
import type { Catalog } from '../../catalog/catalog.ts'
import type { BucketId } from '../../catalog/records.ts'
import { listState } from '../../core/item-expiry.ts'
import type { PageSettings } from '../../core/page.ts'
import type { LinkSigner } from '../../core/signed-url.ts'
import { gzipBody, type PageBody, plainBody } from './page-body.ts'
import type { PageLinkCache } from './page-link-cache.ts'
import { createPageRenderer } from './page-renderer.ts'
import { createRecentKeys } from './recent-keys.ts'

/** A rendered page, and the state of the bucket that it shows (listState). */
export interface Listing {
  readonly state: string
  readonly coding: 'gzip' | 'identity'
  readonly body: PageBody
  /** Whether later requests receive the same object. */
  readonly isCached: boolean
}

export type ListPage = ReturnType<typeof listPageOperation>

/** Shorter pages are not compressed, because they fit into one packet. Bytes. */
const minimumGzipLength = 1024

/** The estimated memory of a cache entry without its page. Bytes. */
const entryOverhead = 500

/** About the memory of a cached page with ten items. Bytes. */
const pageMemory = 4_096

/**
 * Lists page `page` (from 1) of a bucket from one snapshot (docs/interface.md L4). `state` is the state of the
 * bucket, read for this request: a page that was cached for it is current. `cacheSize` is in bytes; 0 disables the cache.
 * A page is cached at its third request.
 */
export function listPageOperation(parts: {
  readonly catalog: Pick<Catalog, 'page'>
  readonly urls: PageSettings
  readonly envelope: 'bare' | 'wrapped'
  readonly pageLinkCache: PageLinkCache
  readonly cacheSize: number
}) {
  const { catalog, pageLinkCache, cacheSize } = parts
  const render = createPageRenderer(parts)
  const cache =
    cacheSize > 0
      ? new LRUCache<string, Listing>({
          maxSize: cacheSize,
          sizeCalculation: ({ body }) => body.own + entryOverhead,
        })
      : null
  // Caching costs more than rendering, in garbage collection. So a page is cached at its third request, and reading a large bucket
  // caches few pages. As many pages are remembered as the cache can hold.
  const remembered = Math.ceil(cacheSize / pageMemory)
  const wasRequested = createRecentKeys(remembered)
  const wasRepeated = createRecentKeys(remembered)

  async function renderPage(
    bucketId: BucketId,
    page: number,
    gzip: boolean,
    signer: LinkSigner | null,
    isCached: boolean,
  ): Promise<Listing> {
    const { total, rows, ...current } = await catalog.page(bucketId, page)
    const state = listState(current)
    const renderedParts = render(page, total, rows, signer)
    const plain = plainBody(pageLinkCache, renderedParts, isCached)
    if (!gzip || plain.length < minimumGzipLength) return { state, coding: 'identity', body: plain, isCached }
    return { state, coding: 'gzip', body: await gzipBody(pageLinkCache, renderedParts), isCached }
  }

  const cacheKey = (bucketId: BucketId, state: string, page: number, gzip: boolean, links: string) =>
    `${bucketId}.${state}.${page}${gzip ? '.gzip' : ''}${links}`

  return async function listPage(
    { bucketId, state }: { readonly bucketId: BucketId; readonly state: string },
    page: number,
    gzip: boolean,
    /** By default the URLs are plain. */
    signer: LinkSigner | null = null,
  ): Promise<Listing> {
    const links = signer === null ? '' : `.${signer.tag}`
    const key = cacheKey(bucketId, state, page, gzip, links)
    const cached = cache?.get(key)
    if (cached) return cached
    const isInDemand = cache !== null && wasRequested(key) && wasRepeated(key)
    const listing = await renderPage(bucketId, page, gzip, signer, isInDemand)
    if (isInDemand) cache.set(cacheKey(bucketId, listing.state, page, gzip, links), listing)
    return listing
  }
}
