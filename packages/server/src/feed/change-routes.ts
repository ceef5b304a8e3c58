import type { SignLinks } from '../access/signed-links.ts'
import { urlsOfBucket } from '../core/bucket-pictures.ts'
import { parseChangesQuery } from '../core/change-queries.ts'
import type { LinkSigner } from '../core/item-urls.ts'
import { type ListedUrls, readListedUrls, readNames, signsUrls } from '../core/queries.ts'
import { ReadLengths } from '../core/read-lengths.ts'
import { formatTimestamp } from '../core/times.ts'
import type { Caller } from '../http/authorizer.ts'
import type { HttpContext } from '../http/context.ts'
import { createSerializer } from '../http/dispatcher.ts'
import { bucketHeader, weightOf } from '../http/headers.ts'
import { itemsText, ListTexts, listReply } from '../http/list-texts.ts'
import { ChangeList, type ValueOf } from '../http/openapi/schemas.ts'
import { type Exchange, type Reply, type Route, route } from '../http/route.ts'
import { mediaObjectOf } from '../items/item-operations.ts'
import type { ChangeRows, ItemChange } from '../storage/catalog/feed/feed.ts'
import type { Feed } from './change-feed.ts'
import * as openapi from './change-routes.openapi.ts'
import { EventStreams, StreamLimits } from './event-streams.ts'

/** The operations that these routes call. */
interface ChangeOperations {
  readonly feed: Feed
  readonly signLinks: SignLinks
}

const eventType = 'text/event-stream'

function prefersEvents(accept: string | undefined): boolean {
  const weight = weightOf(accept, eventType)
  return weight > 0 && weight >= weightOf(accept, 'application/json')
}

type ChangeObject = ValueOf<typeof ChangeList>['data'][number]

/** `GET /api/changes`: what happened to the items of a bucket (docs/interface.md, Feed). */
export function changeRoutes(http: HttpContext, operations: ChangeOperations): readonly Route[] {
  const changes = new ChangeHandler(http, operations)
  return [route('GET', '/api/changes', openapi.listChanges, (exchange) => changes.list(exchange))]
}

class ChangeHandler {
  readonly #http: HttpContext
  readonly #operations: ChangeOperations
  readonly #limits: StreamLimits
  readonly #streams: EventStreams
  readonly #serialize = createSerializer({ schema: ChangeList.properties.data })
  readonly #reads = new ReadLengths()
  /** Requests that wait for changes. */
  #waiting = 0
  /** The texts of changes for all streams that send them, by the tag of the signer. */
  readonly #eventTexts = new WeakMap<ItemChange, Map<string, string>>()
  readonly #caching: Readonly<Record<string, string>>

  constructor(http: HttpContext, operations: ChangeOperations) {
    this.#http = http
    this.#operations = operations
    const { maxStreamsPerToken, maxConnectionsPerAddress, idleTimeout } = http.settings
    this.#limits = new StreamLimits(
      { perToken: maxStreamsPerToken, perAddress: maxConnectionsPerAddress },
      () => http.metrics.refusedStreams.inc(),
    )
    this.#streams = new EventStreams(http, {
      feed: operations.feed,
      eventFormatter: (caller, exchange) => this.#eventFormatter(caller, exchange),
      idleTimeout,
    })
    http.metrics.watchFeed(() => this.#streams.count() + this.#waiting)
    this.#caching = {
      'cache-control': 'private, no-store',
      vary: http.vary('Authorization', bucketHeader, 'Accept'),
    }
  }

  async list(exchange: Exchange): Promise<Reply | null> {
    const { feed, signLinks } = this.#operations
    const { headers } = exchange.request
    const caller = await this.#http.authorize(exchange, 'media:read')
    const { since, after, ...query } = parseChangesQuery(exchange.query)
    const listed: ListedUrls | null = readListedUrls(exchange.query)
    const names = readNames(exchange.query)
    if (prefersEvents(headers.accept)) {
      const sent = headers['last-event-id']?.toString() ?? ''
      // A refusal names the header, not the parameter that it replaces.
      if (sent !== '') feed.cursors.parse(caller.bucketId, sent, 'Last-Event-ID')
      return this.#follow(exchange, caller, sent !== '' ? sent : (after ?? 'now'))
    }
    const { limit, wait } = query
    const first = Math.min(limit, this.#reads.next(caller.bucketId))
    const found = await this.#read(exchange, caller, since ?? after, { limit: first, wait })
    const signer = signsUrls(found.caller, listed) ? await signLinks(null) : null
    return await this.#page(found.caller, found.rows, limit, { signer, names })
  }

  /** The response with up to `limit` changes, the first ones of which have been read. */
  async #page(caller: Caller, first: ChangeRows, limit: number, links: ListedLinks): Promise<Reply> {
    const { feed } = this.#operations
    const { bucketId, tokenId } = caller
    const list = new ListTexts(
      (changes: readonly ItemChange[]) =>
        itemsText(this.#serialize(changes.map((change) => this.#describe(caller, change, links)))),
      () => this.#http.tickQueue.next(tokenId),
    )
    let rows = first
    let next = rows.next
    for (;;) {
      const bytesBefore = list.bytes
      const added = await list.add(rows.changes)
      this.#reads.note(bucketId, added, list.bytes - bytesBefore)
      const isFull = added < rows.changes.length
      next = isFull ? (rows.changes[added - 1]?.number ?? next) : rows.next
      const left = limit - list.count
      if (isFull || !rows.hasMore || left <= 0) {
        this.#http.metrics.sentChanges.inc(list.count)
        const next_cursor = feed.cursors.format(bucketId, { number: next, seen: rows.seen })
        return listReply(this.#caching, list.texts, { next_cursor, has_more: isFull || rows.hasMore })
      }
      await list.pause()
      rows = await feed.read(
        bucketId,
        feed.cursors.format(bucketId, { number: next, seen: rows.seen }),
        Math.min(left, this.#reads.next(bucketId)),
      )
    }
  }

  async #follow(exchange: Exchange, caller: Caller, after: string): Promise<Reply | null> {
    const { feed } = this.#operations
    const { request, response } = exchange
    // Read before the response begins, so that a cursor can be refused.
    const rows = await feed.read(caller.bucketId, after, 1)
    const headers = { 'content-type': eventType, ...this.#caching, 'x-accel-buffering': 'no' }
    if (request.method === 'HEAD') return { status: 200, headers }
    this.#limits.count(response, caller.tokenId, this.#http.addresses.ofRequest(request))
    const from =
      after === 'now' ? { number: rows.next, seen: rows.seen } : feed.cursors.parse(caller.bucketId, after)
    this.#streams.open(exchange, caller, from, { ...this.#http.corsHeaders(request.headers), ...headers })
    return null
  }

  /** Resolves with the changes as soon as there are some, or with none after `wait` milliseconds, or when the service stops. */
  async #read(
    exchange: Exchange,
    caller: Caller,
    after: string | 'now' | null,
    { limit, wait }: { readonly limit: number; readonly wait: number },
  ): Promise<{ readonly rows: ChangeRows; readonly caller: Caller }> {
    const { feed } = this.#operations
    const { authorize, addresses, closing } = this.#http
    const { request, response } = exchange
    const { bucketId } = caller
    const rows = await feed.read(bucketId, after, limit)
    if (wait === 0 || rows.changes.length > 0 || request.method === 'HEAD') return { rows, caller }
    this.#limits.count(response, caller.tokenId, addresses.ofRequest(request))
    const ended = new AbortController()
    const onEnd = () => ended.abort()
    const timer = setTimeout(onEnd, wait)
    response.once('close', onEnd)
    closing.addEventListener('abort', onEnd)
    if (response.closed || closing.aborted) onEnd()
    let verified = caller
    this.#waiting += 1
    try {
      const found = await feed.wait(bucketId, rows.next, {
        ...{ signal: ended.signal, interval: verifyInterval },
        // This also begins the removal of items that have expired.
        verify: async () => {
          verified = await authorize(exchange, 'media:read', { isCounted: true, previous: caller })
        },
      })
      return { rows: firstOf(found, limit), caller: verified }
    } finally {
      this.#waiting -= 1
      clearTimeout(timer)
      response.off('close', onEnd)
      closing.removeEventListener('abort', onEnd)
    }
  }

  async #eventFormatter(
    caller: Caller,
    { query }: Pick<Exchange, 'query'>,
  ): Promise<(change: ItemChange) => string> {
    const names = readNames(query)
    const isSigned = signsUrls(caller, readListedUrls(query))
    const signer = isSigned ? await this.#operations.signLinks(null) : null
    const tag = [signer?.tag, names, caller.isPrivate, caller.pictures].join()
    return (change) => {
      const known = this.#eventTexts.get(change) ?? new Map<string, string>()
      this.#eventTexts.set(change, known)
      const found = known.get(tag)
      if (found !== undefined) return found
      const object = this.#describe(caller, change, { signer, names })
      const text = `id: ${object.cursor}\ndata: ${JSON.stringify(object)}\n\n`
      known.set(tag, text)
      return text
    }
  }

  #describe(caller: Caller, change: ItemChange, { signer, names }: ListedLinks): ChangeObject {
    const urls = urlsOfBucket(this.#http.urls, caller, names)
    return {
      cursor: this.#operations.feed.cursors.format(caller.bucketId, change),
      type: change.kind,
      item_id: change.itemId,
      changed_at: formatTimestamp(change.time),
      item: change.item && mediaObjectOf(urls, change.item, signer),
    }
  }
}

/** How the URLs of items are written: signed, and with names; null for no, and for as the service is set. */
interface ListedLinks {
  readonly signer: LinkSigner | null
  readonly names: boolean | null
}

/** Milliseconds. */
const verifyInterval = 1_000

/** Up to `limit` of the changes. */
function firstOf(rows: ChangeRows, limit: number): ChangeRows {
  if (rows.changes.length <= limit) return rows
  const changes = rows.changes.slice(0, limit)
  return { ...rows, changes, next: changes.at(-1)?.number ?? rows.next, hasMore: true }
}
