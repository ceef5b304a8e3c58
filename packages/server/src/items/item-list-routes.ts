import type { ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import type { SignLinks } from '../access/signed-links.ts'
import { Fault } from '../core/faults.ts'
import type { LinkSigner, UrlSettings } from '../core/item-urls.ts'
import {
  type ItemsQuery,
  type ListedUrls,
  labelPrefix,
  type PageNumber,
  parseItemsQuery,
  parseLabelsQuery,
  readListedUrls,
  signsUrls,
} from '../core/queries.ts'
import type { TickQueue } from '../core/tasks.ts'
import type { HttpContext } from '../http/context.ts'
import { createSerializer } from '../http/dispatcher.ts'
import { acceptsCoding, fingerprintOf, matchesWeakly, noStore, weightOf } from '../http/headers.ts'
import { itemsText, ListTexts, listText } from '../http/list-texts.ts'
import { ItemListQuery } from '../http/openapi/parameters.ts'
import { ItemList } from '../http/openapi/schemas.ts'
import { type Exchange, type Reply, type Route, route } from '../http/route.ts'
import { listState } from '../storage/catalog/buckets.ts'
import type { BucketId, Grant, ItemDetails, TokenId } from '../storage/catalog/records.ts'
import type { ListItems, ListLabels, ListNumbered } from './item-list-operations.ts'
import * as openapi from './item-list-routes.openapi.ts'
import { mediaObjectOf } from './item-operations.ts'

/** The operations that these routes call. */
interface ItemListOperations {
  readonly listItems: ListItems
  readonly listLabels: ListLabels
  readonly listNumbered: ListNumbered
  readonly signLinks: SignLinks
}

/** Part of every entity tag. Increase it when the format of media objects or lists changes. */
const formatVersion = 4

/** Shorter lists are not compressed. Bytes. */
const minimumGzipLength = 1024

const compress = promisify(gzip)

/** One media object on each line (https://github.com/ndjson/ndjson-spec). */
const lineType = 'application/x-ndjson'

function prefersLines(accept: string | undefined): boolean {
  const weight = weightOf(accept, lineType)
  return weight > 0 && weight >= weightOf(accept, 'application/json')
}

/** `GET /api/items`: the media objects of a bucket by cursor (docs/interface.md, Lists of items). */
export function itemListRoutes(http: HttpContext, operations: ItemListOperations): readonly Route[] {
  const { authorize, tickQueue, urls, catalog } = http
  const { listItems, listLabels, listNumbered, signLinks } = operations
  const openStream = createItemStreams({ listItems, tickQueue })
  const serialize = createSerializer({ schema: ItemList.properties.data })
  /** The settings that media objects depend on. The tools are an array, because JSON.stringify omits the members of a set. */
  const { baseUrl, mediaBaseUrl, extensions, variants, tools = [] } = urls
  const settings = { baseUrl, mediaBaseUrl, extensions, variants, tools: [...tools].toSorted() }

  /** Returns the entity tags of the responses to a query at one state of the bucket (K7). */
  function entityTags(bucketId: BucketId, state: string, query: ItemsQuery, signer: LinkSigner | null) {
    const digest = fingerprintOf([formatVersion, catalog.epoch, settings, query])
    const tag = `${digest}.${bucketId}.${state}${signer === null ? '' : `.${signer.tag}`}`
    return { identity: `"${tag}"`, gzip: `"${tag}.gzip"` }
  }

  const caching = {
    'cache-control': 'private, no-cache',
    vary: http.vary('Authorization', 'Accept', 'Accept-Encoding'),
  }
  const signerOf = async (grant: Grant, listed: ListedUrls | null) =>
    signsUrls(grant, listed) ? await signLinks(null) : null
  const notModified = (etag: string): Reply => ({ status: 304, headers: { etag, ...caching } })

  /** The rest of the list as lines. */
  async function lines(
    exchange: Exchange,
    { tokenId, bucketId }: Grant,
    query: ItemsQuery,
    listed: ListedUrls | null,
  ): Promise<Reply> {
    const stream = await openStream(exchange.response, {
      tokenId,
      bucketId,
      query,
      async formatter() {
        // Verified again for each batch, so that a token that was revoked or has expired receives no more items or signed URLs.
        const grant = await authorize(exchange, 'media:read', { isCounted: true })
        const signer = await signerOf(grant, listed)
        return (item) => `${JSON.stringify(mediaObjectOf(urls, item, signer))}\n`
      },
    })
    const headers = { 'content-type': lineType, ...caching }
    return { status: 200, headers, stream }
  }

  /** The body of a list by cursor, or of a numbered page. */
  async function read(
    { bucketId, tokenId }: Grant,
    query: ItemsQuery,
    signer: LinkSigner | null,
    sent: Readonly<Record<string, unknown>>,
  ) {
    const { page } = query
    const pause = () => tickQueue.next(tokenId)
    const textOf = (items: readonly ItemDetails[]) =>
      itemsText(serialize(items.map((item) => mediaObjectOf(urls, item, signer))))
    if (page === undefined) {
      const list = new ListTexts(textOf, pause)
      const { state, next } = await listItems(bucketId, query, list)
      return { state, next, text: listText(list.texts, { next_cursor: next }) }
    }
    const { state, items, ...counts } = await listNumbered(bucketId, query, page, pause)
    const list = new ListTexts(textOf, pause, Infinity)
    await pause()
    await list.add(items)
    const numbers = numberedMembers(urls, sent, page, { count: items.length, ...counts })
    return { state, next: null, text: listText(list.texts, numbers) }
  }

  async function list(exchange: Exchange): Promise<Reply> {
    const { headers } = exchange.request
    const grant = await authorize(exchange, 'media:read')
    const { bucketId } = grant
    const query = parseItemsQuery(exchange.query)
    const listed = readListedUrls(exchange.query)
    const { page } = query
    if (page === undefined && prefersLines(headers.accept)) return await lines(exchange, grant, query, listed)
    const signer = await signerOf(grant, listed)
    const ifNoneMatch = headers['if-none-match'] ?? ''
    const acceptsGzip = acceptsCoding(headers['accept-encoding'], 'gzip')

    // If a tag has the current state, the list is not read. `*` matches any state, so it is compared with the list below.
    if (ifNoneMatch !== '*') {
      const { identity, gzip } = entityTags(bucketId, listState(grant), query, signer)
      const tags = acceptsGzip ? [identity, gzip] : [identity]
      const matched = tags.find((tag) => matchesWeakly(ifNoneMatch, tag))
      if (matched !== undefined) return notModified(matched)
    }

    await tickQueue.next(grant.tokenId)
    const { state, text, next } = await read(grant, query, signer, exchange.query)
    const body = Buffer.from(text)
    const isCompressed = acceptsGzip && body.length >= minimumGzipLength
    const etag = entityTags(bucketId, state, query, signer)[isCompressed ? 'gzip' : 'identity']
    if (matchesWeakly(ifNoneMatch, etag)) return notModified(etag)
    return {
      status: 200,
      headers: {
        'content-type': 'application/json; charset=utf-8',
        etag,
        ...caching,
        ...(next === null ? {} : { link: `<${nextUrl(urls, exchange.query, next)}>; rel="next"` }),
        ...(isCompressed ? { 'content-encoding': 'gzip' } : {}),
      },
      body: isCompressed ? await compress(body) : body,
    }
  }

  /** The labels of the items of the caller's bucket, for filters. */
  async function labels(exchange: Exchange): Promise<Reply> {
    const { bucketId, tokenId } = await authorize(exchange, 'media:read')
    const { key, limit } = parseLabelsQuery(exchange.query)
    await tickQueue.next(tokenId)
    return {
      status: 200,
      headers: noStore,
      json: await listLabels(bucketId, key, limit, () => tickQueue.next(tokenId)),
    }
  }

  return [
    route('GET', '/api/items', openapi.listItems, list),
    route('GET', '/api/labels', openapi.listLabels, labels),
  ]
}

/** The members of a numbered page besides its items, in the form of Laravel's resources (docs/interface.md K18). */
function numberedMembers(
  { baseUrl }: UrlSettings,
  sent: Readonly<Record<string, unknown>>,
  { number, size }: PageNumber,
  {
    count,
    total,
    hasMore,
  }: { readonly count: number; readonly total: number | null; readonly hasMore: boolean },
) {
  const path = `${baseUrl}/api/items`
  const last = total === null ? null : Math.max(1, Math.ceil(total / size))
  const linkOf = (page: number | null) => {
    if (page === null) return null
    const parameters = new URLSearchParams(sentParameters(sent))
    parameters.set('per_page', `${size}`)
    parameters.set('page', `${page}`)
    return `${path}?${parameters}`
  }
  return {
    links: {
      first: linkOf(1),
      last: linkOf(last),
      prev: linkOf(number > 1 ? number - 1 : null),
      next: linkOf(hasMore ? number + 1 : null),
    },
    meta: {
      current_page: number,
      from: count === 0 ? null : (number - 1) * size + 1,
      last_page: last,
      path,
      per_page: size,
      to: count === 0 ? null : (number - 1) * size + count,
      total,
    },
  }
}

/** The known parameters of a request as they were sent, but the cursor. */
const sentParameters = (sent: Readonly<Record<string, unknown>>): [string, string][] =>
  [
    ...Object.keys(ItemListQuery.properties).filter((name) => name in sent && name !== 'after'),
    ...Object.keys(sent).filter((name) => name.startsWith(labelPrefix)),
  ].map((name) => [name, `${sent[name]}`])

/** The URL of the list after a cursor, with the other parameters as sent. */
function nextUrl({ baseUrl }: UrlSettings, sent: Readonly<Record<string, unknown>>, cursor: string): string {
  const parameters = new URLSearchParams(sentParameters(sent))
  parameters.set('after', cursor)
  return `${baseUrl}/api/items?${parameters}`
}

/** Items of one piece of work, and bytes of their lines: they are read, verified and sent together. */
const batchSize = 50

const maxBatchBytes = 64 * 1024

/** Bytes that a stream holds for its client, besides those of the connection. */
const maxUnsent = 16 * 1024

/** Streams of one token at a time, in each process. */
const maxStreams = 16

/** What a stream lists, and for whom. */
export interface ItemStream {
  readonly tokenId: TokenId
  readonly bucketId: BucketId
  readonly query: ItemsQuery
  /** Returns what formats the items of a batch as lines. Throws Fault if the token is no longer valid. */
  readonly formatter: () => Promise<(item: ItemDetails) => string>
}

/**
 * Returns the rest of a list, which is read as the client receives it (docs/interface.md K10). Throws Fault `streams-too-many` and those
 * of the list.
 */
export type OpenItemStream = (response: ServerResponse, stream: ItemStream) => Promise<Readable>

export function createItemStreams({
  listItems,
  tickQueue,
}: {
  readonly listItems: ListItems
  readonly tickQueue: TickQueue
}): OpenItemStream {
  const counts = new Map<TokenId, number>()

  /** Counts a stream of a token until its response has ended. The client may have closed the connection already. */
  function count(response: ServerResponse, tokenId: TokenId): void {
    if (response.closed) return
    const others = counts.get(tokenId) ?? 0
    if (others >= maxStreams)
      throw new Fault(
        'streams-too-many',
        `This token has ${maxStreams} streams of items that have not ended. Read them to their end, or close their connections.`,
        { members: { maximum: maxStreams } },
      )
    counts.set(tokenId, others + 1)
    response.once('close', () => {
      const left = (counts.get(tokenId) ?? 0) - 1
      if (left > 0) counts.set(tokenId, left)
      else counts.delete(tokenId)
    })
  }

  /** The lines of one batch; they are all that a stream holds, besides its place in the list. */
  async function read(stream: ItemStream, after: string | null, limit: number): Promise<Lines> {
    await tickQueue.next(stream.tokenId)
    return await readLines(listItems, stream, { after, limit }, () => tickQueue.next(stream.tokenId))
  }

  async function* linesOf(stream: ItemStream, first: Lines): AsyncGenerator<string> {
    let lines = first
    for (;;) {
      yield lines.text
      if (lines.next === null) return
      lines = await read(stream, lines.next, lines.nextLimit)
    }
  }

  return async (response, stream) => {
    count(response, stream.tokenId)
    // The first read is before the head is sent, so that the response can report a malformed cursor or another error.
    const first = await read(stream, stream.query.after, batchSize)
    return Readable.from(linesOf(stream, first), { objectMode: false, highWaterMark: maxUnsent })
  }
}

interface Lines {
  readonly text: string
  /** The cursor of the next batch; null after the last one. */
  readonly next: string | null
  /** How many items the next batch reads: about as many as have room in it. */
  readonly nextLimit: number
}

/** Reads the lines of a batch, and the cursor of the next one. */
export async function readLines(
  listItems: ListItems,
  { bucketId, query, formatter }: Pick<ItemStream, 'bucketId' | 'query' | 'formatter'>,
  { after, limit }: Pick<ItemsQuery, 'after' | 'limit'>,
  pause: () => Promise<void>,
): Promise<Lines> {
  const format = await formatter()
  // Items may have expired since the stream began (E2). Their lines are empty.
  const now = Date.now()
  const lineOf = (item: ItemDetails) => (item.expiresAt == null || item.expiresAt > now ? format(item) : '')
  const list = new ListTexts(
    (items: readonly ItemDetails[]) => items.map(lineOf).join(''),
    pause,
    maxBatchBytes,
  )
  const { next } = await listItems(bucketId, { ...query, limit, after }, list)
  const text = list.texts.join('')
  const nextLimit = Math.ceil((maxBatchBytes * list.count) / Math.max(1, text.length))
  return { text, next, nextLimit: Math.min(batchSize, Math.max(1, nextLimit)) }
}
