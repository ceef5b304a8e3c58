import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import { LRUCache } from 'lru-cache'
import { allocateWithHeadRoom, headRoom, withHeadRoom } from '../core/bytes.ts'
import { combineCrc32 } from '../core/crc32.ts'
import type { LinkSigner } from '../core/item-urls.ts'
import type { PageSettings } from '../core/page.ts'
import { listState } from '../storage/catalog/buckets.ts'
import type { Catalog } from '../storage/catalog/catalog.ts'
import type { BucketId } from '../storage/catalog/records.ts'
import { type Deflated, deflateChunkSync, type PageLinkCache } from './page-link-cache.ts'
import { createPageRenderer, type PagePart } from './page-text.ts'
import { RecentKeys } from './recent-keys.ts'

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
  const requested = new RecentKeys(remembered)
  const repeated = new RecentKeys(remembered)

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
    const isInDemand = cache !== null && requested.noteAgain(key) && repeated.noteAgain(key)
    const listing = await renderPage(bucketId, page, gzip, signer, isInDemand)
    if (isInDemand) cache.set(cacheKey(bucketId, listing.state, page, gzip, links), listing)
    return listing
  }
}

const gzipped = promisify(gzip)

/** The body of a page. All bodies share the links of the page-link cache; they are not copied. */
export interface PageBody {
  /** Bytes. */
  readonly length: number
  /** Memory that this body does not share with others. Bytes. */
  readonly own: number
  /** If the page has one part: its ASCII text, or its bytes with `headRoom` in front of them. */
  readonly whole: string | Uint8Array | null
  readonly chunks: () => Iterable<Buffer>
}

/** The body of a page that is not cached remains text, which needs no memory outside of V8's heap. */
function plainBody(pageLinkCache: PageLinkCache, parts: readonly PagePart[], isCached: boolean): PageBody {
  const [only, ...others] = parts
  if (typeof only === 'string' && others.length === 0) return isCached ? oneRun(bytesOf(only)) : oneText(only)
  return {
    length: sum(
      parts.map((part) =>
        typeof part === 'string' ? part.length : pageLinkCache.length(part.from, part.to),
      ),
    ),
    own: sum(parts.map((part) => (typeof part === 'string' ? part.length : 0))),
    whole: null,
    *chunks() {
      for (const part of parts) {
        if (typeof part === 'string') yield Buffer.from(part, 'latin1')
        else yield* pageLinkCache.plain(part.from, part.to)
      }
    },
  }
}

/** RFC 1952: magic, deflate, no flags, no time, no extra flags, unknown system. */
const header = Buffer.from([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255])
/** An empty final block, which ends the deflate stream. */
const end = Buffer.from([3, 0])

/** The same bytes as one gzip stream, concatenated from separately compressed parts. */
async function gzipBody(pageLinkCache: PageLinkCache, parts: readonly PagePart[]): Promise<PageBody> {
  const [only, ...others] = parts
  if (typeof only === 'string' && others.length === 0) return oneRun(withHeadRoom(await gzipped(only)))
  const compressed: Deflated[] = []
  let own = 0
  let pending: Buffer[] = []
  /** Compresses the bytes between two shared chunks together. */
  const compressPending = () => {
    if (pending.length === 0) return
    const chunk = deflateChunkSync(Buffer.concat(pending))
    pending = []
    own += chunk.bytes.length
    compressed.push(chunk)
  }
  for (const part of parts) {
    for (const bytes of typeof part === 'string'
      ? [Buffer.from(part)]
      : pageLinkCache.compressed(part.from, part.to)) {
      if (Buffer.isBuffer(bytes)) {
        pending.push(bytes)
      } else {
        compressPending()
        const chunk = await bytes
        if (!chunk.isShared) own += chunk.bytes.length
        compressed.push(chunk)
      }
    }
  }
  compressPending()
  const trailer = Buffer.alloc(8)
  trailer.writeUInt32LE(compressed.reduce((crc, chunk) => combineCrc32(crc, chunk.crc, chunk.crcShift), 0))
  trailer.writeUInt32LE(sum(compressed.map(({ plainLength }) => plainLength)) % 2 ** 32, 4)
  const chunks = [header, ...compressed.map(({ bytes }) => bytes), end, trailer]
  return { length: sum(chunks.map(({ length }) => length)), own, whole: null, chunks: () => chunks }
}

function oneRun(whole: Buffer): PageBody {
  return { length: whole.length, own: headRoom + whole.length, whole, chunks: () => [whole] }
}

const oneText = (whole: string): PageBody => ({
  length: whole.length,
  own: whole.length,
  whole,
  chunks: () => [Buffer.from(whole, 'latin1')],
})

/** Pages have ASCII characters only. */
function bytesOf(text: string): Buffer {
  const bytes = allocateWithHeadRoom(text.length)
  bytes.write(text, 'latin1')
  return bytes
}

const sum = (numbers: readonly number[]): number => numbers.reduce((total, number) => total + number, 0)
