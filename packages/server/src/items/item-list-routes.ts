import type { ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import type { SignLinks } from '../access/signed-links.ts'
import { urlsOfBucket } from '../core/bucket-pictures.ts'
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
  readNames,
  signsUrls,
} from '../core/queries.ts'
import type { TickQueue } from '../core/tasks.ts'
import type { HttpContext } from '../http/context.ts'
import { createSerializer } from '../http/dispatcher.ts'
import {
  acceptsCoding,
  bucketHeader,
  fingerprintOf,
  matchesWeakly,
  noStore,
  weightOf,
} from '../http/headers.ts'
import { itemsText, ListTexts, listText } from '../http/list-texts.ts'
import { ItemListQuery } from '../http/openapi/parameters.ts'
import { ItemList } from '../http/openapi/schemas.ts'
import { type Exchange, type Reply, type Route, route } from '../http/route.ts'
import { listState } from '../storage/catalog/buckets.ts'
import type { BucketId, Grant, TokenId } from '../storage/catalog/records.ts'
import type {
  AddKeys,
  ItemSink,
  ListedItem,
  ListItems,
  ListLabels,
  ListNumbered,
} from './item-list-operations.ts'
import * as openapi from './item-list-routes.openapi.ts'
import { mediaObjectOf } from './item-operations.ts'

/** The operations that these routes call. */
interface ItemListOperations {
  readonly addKeys: AddKeys
  readonly listItems: ListItems
  readonly listLabels: ListLabels
  readonly listNumbered: ListNumbered
  readonly signLinks: SignLinks
}

/** Part of every entity tag. Increase the number when the format of lists, or of a member of media objects, changes. */
const format = fingerprintOf([4, Object.keys(ItemList.properties.data.items.properties)])

/** Shorter lists are not compressed. Bytes. */
const minimumGzipLength = 1024

const compress = promisify(gzip)

/** One media object on each line (https://github.com/ndjson/ndjson-spec). */
const lineType = 'application/x-ndjson'

function prefersLines(accept: string | undefined): boolean {
  const weight = weightOf(accept, lineType)
  return weight > 0 && weight >= weightOf(accept, 'application/json')
}

/** `GET /api/items` and `GET /api/labels` (docs/interface.md, Lists of items). */
export function itemListRoutes(http: HttpContext, operations: ItemListOperations): readonly Route[] {
  const items = new ItemListHandler(http, operations)
  return [
    route('GET', '/api/items', openapi.listItems, (exchange) => items.list(exchange), { kind: 'list' }),
    route('GET', '/api/labels', openapi.listLabels, (exchange) => listLabels(http, operations, exchange), {
      kind: 'list',
    }),
  ]
}

/** The labels of the items of the caller's bucket, for filters. */
async function listLabels(
  { authorize, tickQueue }: HttpContext,
  operations: Pick<ItemListOperations, 'listLabels'>,
  exchange: Exchange,
): Promise<Reply> {
  const { bucketId, tokenId } = await authorize(exchange, 'media:read')
  const { key, limit } = parseLabelsQuery(exchange.query)
  await tickQueue.next(tokenId)
  return {
    status: 200,
    headers: noStore,
    json: await operations.listLabels(bucketId, key, limit, () => tickQueue.next(tokenId)),
  }
}

/** The media objects of a bucket by cursor, by page, or as lines. */
class ItemListHandler {
  readonly #http: HttpContext
  readonly #operations: ItemListOperations
  readonly #streams: ItemStreams
  readonly #serialize = createSerializer({ schema: ItemList.properties.data })
  readonly #caching: Readonly<Record<string, string>>
  /** The settings that media objects depend on. */
  readonly #settings: object

  constructor(http: HttpContext, operations: ItemListOperations) {
    this.#http = http
    this.#operations = operations
    this.#streams = new ItemStreams({ ...operations, tickQueue: http.tickQueue })
    this.#caching = {
      'cache-control': 'private, no-cache',
      vary: http.vary('Authorization', bucketHeader, 'Accept', 'Accept-Encoding'),
    }
    // The tools are an array, because JSON.stringify omits the members of a set.
    const { baseUrl, mediaBaseUrl, extensions, names, variants, tools = [] } = http.urls
    this.#settings = { baseUrl, mediaBaseUrl, extensions, names, variants, tools: [...tools].toSorted() }
  }

  async list(exchange: Exchange): Promise<Reply> {
    const { authorize, tickQueue, urls } = this.#http
    const { headers } = exchange.request
    const grant = await authorize(exchange, 'media:read')
    const query = parseItemsQuery(exchange.query)
    const listed = readListedUrls(exchange.query)
    const names = readNames(exchange.query)
    if (query.page === undefined && prefersLines(headers.accept))
      return await this.#lines(exchange, grant, query, listed)
    const signer = await this.#signerOf(grant, listed)
    const tagged = names === null ? query : { ...query, names }
    const ifNoneMatch = headers['if-none-match'] ?? ''
    const acceptsGzip = acceptsCoding(headers['accept-encoding'], 'gzip')

    // If a tag has the current state, the list is not read. `*` matches any state, so it is compared with the list below.
    if (ifNoneMatch !== '' && ifNoneMatch !== '*') {
      const { identity, gzip } = this.#entityTags(grant, listState(grant), tagged, signer)
      const tags = acceptsGzip ? [identity, gzip] : [identity]
      const matched = tags.find((tag) => matchesWeakly(ifNoneMatch, tag))
      if (matched !== undefined) return this.#notModified(matched)
    }

    await tickQueue.next(grant.tokenId)
    const { state, text, next } = await this.#read(grant, query, signer, exchange.query)
    const body = Buffer.from(text)
    const isCompressed = acceptsGzip && body.length >= minimumGzipLength
    const etag = this.#entityTags(grant, state, tagged, signer)[isCompressed ? 'gzip' : 'identity']
    if (matchesWeakly(ifNoneMatch, etag)) return this.#notModified(etag)
    return {
      status: 200,
      headers: {
        'content-type': 'application/json; charset=utf-8',
        etag,
        ...this.#caching,
        ...(next === null ? {} : { link: `<${nextUrl(urls, exchange.query, next)}>; rel="next"` }),
        ...(isCompressed ? { 'content-encoding': 'gzip' } : {}),
      },
      body: isCompressed ? await compress(body) : body,
    }
  }

  /** The rest of the list as lines. */
  async #lines(
    exchange: Exchange,
    previous: Grant,
    query: ItemsQuery,
    listed: ListedUrls | null,
  ): Promise<Reply> {
    const { authorize, urls: settings } = this.#http
    const { tokenId, bucketId } = previous
    const stream = await this.#streams.open(exchange.response, {
      tokenId,
      bucketId,
      query,
      formatter: async () => {
        // Verified again for each batch, so that a token that was revoked or has expired receives no more items or signed URLs.
        const grant = await authorize(exchange, 'media:read', { isCounted: true, previous })
        const signer = await this.#signerOf(grant, listed)
        const urls = urlsOfBucket(settings, grant, readNames(exchange.query))
        return (item) => `${JSON.stringify(listedObjectOf(urls, item, signer))}\n`
      },
    })
    return { status: 200, headers: { 'content-type': lineType, ...this.#caching }, stream }
  }

  /** The body of a list by cursor, or of a numbered page. */
  async #read(
    grant: Grant,
    query: ItemsQuery,
    signer: LinkSigner | null,
    sent: Readonly<Record<string, unknown>>,
  ) {
    const { tickQueue } = this.#http
    const { bucketId, tokenId } = grant
    const urls = urlsOfBucket(this.#http.urls, grant, readNames(sent))
    const { page } = query
    const pause = () => tickQueue.next(tokenId)
    const textOf = (items: readonly ListedItem[]) =>
      itemsText(this.#serialize(items.map((item) => listedObjectOf(urls, item, signer))))
    const { addKeys, listItems } = this.#operations
    if (page === undefined) {
      const list = new ListTexts(textOf, pause)
      const { state, next } = await listItems(bucketId, query, sinkOf(list, bucketId, query, addKeys))
      return { state, next, text: listText(list.texts, { next_cursor: next }) }
    }
    const { state, items, ...counts } = await this.#operations.listNumbered(bucketId, query, page, pause)
    const list = new ListTexts(textOf, pause, Infinity)
    await pause()
    await sinkOf(list, bucketId, query, addKeys).add(items)
    const numbers = numberedMembers(urls, sent, page, { count: items.length, ...counts })
    return { state, next: null, text: listText(list.texts, numbers) }
  }

  /** Returns the entity tags of the responses to a query at one state of the bucket (K7). */
  #entityTags(grant: Grant, state: string, query: ItemsQuery, signer: LinkSigner | null) {
    const { bucketId, pictures, isPrivate } = grant
    const ofBucket = pictures === null ? [] : [pictures, isPrivate]
    const digest = fingerprintOf([format, this.#http.catalog.epoch, this.#settings, query, ...ofBucket])
    const tag = `${digest}.${bucketId}.${state}${signer === null ? '' : `.${signer.tag}`}`
    return { identity: `"${tag}"`, gzip: `"${tag}.gzip"` }
  }

  #notModified(etag: string): Reply {
    return { status: 304, headers: { etag, ...this.#caching } }
  }

  async #signerOf(grant: Grant, listed: ListedUrls | null): Promise<LinkSigner | null> {
    return signsUrls(grant, listed) ? await this.#operations.signLinks(null) : null
  }
}

/** The media object of an item of a list, with its key if the list shows keys. */
function listedObjectOf(urls: UrlSettings, item: ListedItem, signer: LinkSigner | null) {
  const object = mediaObjectOf(urls, item, signer)
  return item.key === undefined ? object : { ...object, key: item.key }
}

/** The list of a response, to which the keys of its items are added if the query asks for them. */
const sinkOf = (
  list: ListTexts<ListedItem>,
  bucketId: BucketId,
  { keys = false }: Pick<ItemsQuery, 'keys'>,
  addKeys: AddKeys,
): ItemSink =>
  keys
    ? {
        add: async (items) => await list.add(await addKeys(bucketId, items)),
        get bytes() {
          return list.bytes
        },
        pause: list.pause,
      }
    : list

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
  readonly formatter: () => Promise<(item: ListedItem) => string>
}

/** The rest of lists, which are read as their clients receive them (docs/interface.md K10). */
export class ItemStreams {
  readonly #operations: Pick<ItemListOperations, 'listItems' | 'addKeys'>
  readonly #tickQueue: TickQueue
  /** The streams of each token. */
  readonly #counts = new Map<TokenId, number>()

  constructor({
    tickQueue,
    ...operations
  }: Pick<ItemListOperations, 'listItems' | 'addKeys'> & { readonly tickQueue: TickQueue }) {
    this.#operations = operations
    this.#tickQueue = tickQueue
  }

  /** Throws Fault `streams-too-many` and those of the list. */
  async open(response: ServerResponse, stream: ItemStream): Promise<Readable> {
    this.#count(response, stream.tokenId)
    // The first read is before the head is sent, so that the response can report a malformed cursor or another error.
    const first = await this.#read(stream, stream.query.after, batchSize)
    return Readable.from(this.#linesOf(stream, first), { objectMode: false, highWaterMark: maxUnsent })
  }

  /** Counts a stream of a token until its response has ended. The client may have closed the connection already. */
  #count(response: ServerResponse, tokenId: TokenId): void {
    if (response.closed) return
    const others = this.#counts.get(tokenId) ?? 0
    if (others >= maxStreams)
      throw new Fault(
        'streams-too-many',
        `This token has ${maxStreams} streams of items that have not ended. Read them to their end, or close their connections.`,
        { members: { maximum: maxStreams } },
      )
    this.#counts.set(tokenId, others + 1)
    response.once('close', () => {
      const left = (this.#counts.get(tokenId) ?? 0) - 1
      if (left > 0) this.#counts.set(tokenId, left)
      else this.#counts.delete(tokenId)
    })
  }

  /** The lines of one batch; they are all that a stream holds, besides its place in the list. */
  async #read(stream: ItemStream, after: string | null, limit: number): Promise<Lines> {
    const pause = () => this.#tickQueue.next(stream.tokenId)
    await pause()
    return await readLines(this.#operations, stream, { after, limit }, pause)
  }

  async *#linesOf(stream: ItemStream, first: Lines): AsyncGenerator<string> {
    let lines = first
    for (;;) {
      yield lines.text
      if (lines.next === null) return
      lines = await this.#read(stream, lines.next, lines.nextLimit)
    }
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
  { listItems, addKeys }: Pick<ItemListOperations, 'listItems' | 'addKeys'>,
  { bucketId, query, formatter }: Pick<ItemStream, 'bucketId' | 'query' | 'formatter'>,
  { after, limit }: Pick<ItemsQuery, 'after' | 'limit'>,
  pause: () => Promise<void>,
): Promise<Lines> {
  const format = await formatter()
  // Items may have expired since the stream began (E2). Their lines are empty.
  const now = Date.now()
  const lineOf = (item: ListedItem) => (item.expiresAt == null || item.expiresAt > now ? format(item) : '')
  const list = new ListTexts(
    (items: readonly ListedItem[]) => items.map(lineOf).join(''),
    pause,
    maxBatchBytes,
  )
  const { next } = await listItems(
    bucketId,
    { ...query, limit, after },
    sinkOf(list, bucketId, query, addKeys),
  )
  const text = list.texts.join('')
  const nextLimit = Math.ceil((maxBatchBytes * list.count) / Math.max(1, text.length))
  return { text, next, nextLimit: Math.min(batchSize, Math.max(1, nextLimit)) }
}
