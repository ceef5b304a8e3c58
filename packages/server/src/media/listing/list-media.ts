import { LRUCache } from 'lru-cache'
import type { BucketId, Catalog } from '../../catalog/catalog.ts'
import type { PageSettings } from '../../core/page.ts'
import { gzipBody, type PageBody, plainBody } from './page-body.ts'
import type { PageLinkCache } from './page-link-cache.ts'
import { pageParts } from './page-parts.ts'

/** A page's bytes, and the revision of the bucket that they show. */
export interface Listing {
  readonly revision: number
  readonly coding: 'gzip' | 'identity'
  readonly body: PageBody
}

export type ListMedia = (
  bucket: { readonly bucketId: BucketId; readonly revision: number },
  page: number,
  gzip: boolean,
) => Promise<Listing>

/** Shorter answers fit one packet as they are. Bytes. */
const leastGzipped = 1024

/** What an entry of the cache costs beside its bytes, roughly. */
const entryOverhead = 500

/**
 * Lists page `page` (from 1) of a bucket, all of it from one snapshot (docs/interface.md L4). `revision` is the
 * bucket's, read for this request: bytes made for it before are as good as new ones. `cacheSize` is in bytes; 0 for none.
 */
export function listMediaOperation(parts: {
  readonly catalog: Pick<Catalog, 'page'>
  readonly form: PageSettings
  readonly envelope: 'bare' | 'wrapped'
  readonly pageLinkCache: PageLinkCache
  readonly cacheSize: number
}): ListMedia {
  const { catalog, pageLinkCache, cacheSize } = parts
  const cache =
    cacheSize > 0
      ? new LRUCache<string, Listing>({
          maxSize: cacheSize,
          sizeCalculation: ({ body }) => body.own + entryOverhead,
        })
      : null

  async function make(bucketId: BucketId, page: number, gzip: boolean): Promise<Listing> {
    const { revision, total, rows } = await catalog.page(bucketId, page)
    const bytes = pageParts(parts, page, total, rows)
    const plain = plainBody(pageLinkCache, bytes)
    if (!gzip || plain.length < leastGzipped) return { revision, coding: 'identity', body: plain }
    return { revision, coding: 'gzip', body: await gzipBody(pageLinkCache, bytes) }
  }

  const keyOf = (bucketId: BucketId, revision: number, page: number, gzip: boolean) =>
    `${bucketId}.${revision}.${page}${gzip ? '.gzip' : ''}`

  return async ({ bucketId, revision }, page, gzip) => {
    const known = cache?.get(keyOf(bucketId, revision, page, gzip))
    if (known) return known
    const listing = await make(bucketId, page, gzip)
    cache?.set(keyOf(bucketId, listing.revision, page, gzip), listing)
    return listing
  }
}
