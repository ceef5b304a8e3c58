import type { SignLinks } from '../access/signed-links.ts'
import type { LinkSigner } from '../core/item-urls.ts'
import { type ListedUrls, parseChangesQuery, readListedUrls, signsUrls } from '../core/queries.ts'
import { ReadLengths } from '../core/read-lengths.ts'
import type { Caller } from '../http/authorizer.ts'
import type { HttpContext } from '../http/context.ts'
import { createSerializer } from '../http/dispatcher.ts'
import { weightOf } from '../http/headers.ts'
import { itemsText, ListTexts, listReply } from '../http/list-texts.ts'
import { ChangeList, type ValueOf } from '../http/openapi/schemas.ts'
import { type Exchange, type Reply, type Route, route } from '../http/route.ts'
import { formatTimestamp, mediaObjectOf } from '../items/item-operations.ts'
import type { ChangeRows, ItemChange } from '../storage/catalog/feed.ts'
import type { BucketId } from '../storage/catalog/records.ts'
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
export function changeRoutes(http: HttpContext, { feed, signLinks }: ChangeOperations): readonly Route[] {
  const { authorize, urls, closing, metrics, addresses, settings, tickQueue } = http
  const { maxStreamsPerToken, maxConnectionsPerAddress, idleTimeout } = settings
  const limits = new StreamLimits(
    { perToken: maxStreamsPerToken, perAddress: maxConnectionsPerAddress },
    () => metrics.refusedStreams.inc(),
  )
  const streams = new EventStreams(http, { feed, eventFormatter, idleTimeout })
  let waiting = 0
  metrics.watchFeed(() => streams.count() + waiting)
  const serialize = createSerializer({ schema: ChangeList.properties.data })
  const reads = new ReadLengths()

  const describe = (bucketId: BucketId, change: ItemChange, signer: LinkSigner | null): ChangeObject => ({
    cursor: feed.cursors.format(bucketId, change),
    type: change.kind,
    item_id: change.itemId,
    changed_at: formatTimestamp(change.time),
    item: change.item && mediaObjectOf(urls, change.item, signer),
  })

  /** The texts of changes for all streams that send them, by the tag of the signer. */
  const eventTexts = new WeakMap<ItemChange, Map<string, string>>()

  async function eventFormatter(caller: Caller): Promise<(change: ItemChange) => string> {
    const signer = signsUrls(caller, null) ? await signLinks(null) : null
    const tag = signer?.tag ?? ''
    return (change) => {
      const known = eventTexts.get(change) ?? new Map<string, string>()
      eventTexts.set(change, known)
      const found = known.get(tag)
      if (found !== undefined) return found
      const object = describe(caller.bucketId, change, signer)
      const text = `id: ${object.cursor}\ndata: ${JSON.stringify(object)}\n\n`
      known.set(tag, text)
      return text
    }
  }

  const caching = { 'cache-control': 'private, no-store', vary: http.vary('Authorization', 'Accept') }

  async function follow(exchange: Exchange, caller: Caller, after: string): Promise<Reply | null> {
    const { request, response } = exchange
    // Read before the response begins, so that a cursor can be refused.
    const rows = await feed.read(caller.bucketId, after, 1)
    const headers = { 'content-type': eventType, ...caching, 'x-accel-buffering': 'no' }
    if (request.method === 'HEAD') return { status: 200, headers }
    limits.count(response, caller.tokenId, addresses.ofRequest(request))
    const from =
      after === 'now' ? { number: rows.next, seen: rows.seen } : feed.cursors.parse(caller.bucketId, after)
    streams.open(exchange, caller, from, { ...http.corsHeaders(request.headers), ...headers })
    return null
  }

  /** Resolves with the changes as soon as there are some, or with none after `wait` milliseconds, or when the service stops. */
  async function read(
    exchange: Exchange,
    caller: Caller,
    after: string | 'now' | null,
    { limit, wait }: { readonly limit: number; readonly wait: number },
  ): Promise<{ readonly rows: ChangeRows; readonly caller: Caller }> {
    const { request, response } = exchange
    const { bucketId } = caller
    const rows = await feed.read(bucketId, after, limit)
    if (wait === 0 || rows.changes.length > 0 || request.method === 'HEAD') return { rows, caller }
    limits.count(response, caller.tokenId, addresses.ofRequest(request))
    const ended = new AbortController()
    const onEnd = () => ended.abort()
    const timer = setTimeout(onEnd, wait)
    response.once('close', onEnd)
    closing.addEventListener('abort', onEnd)
    if (response.closed || closing.aborted) onEnd()
    let verified = caller
    waiting += 1
    try {
      const found = await feed.wait(bucketId, rows.next, {
        ...{ signal: ended.signal, interval: verifyInterval },
        // This also begins the removal of items that have expired.
        async verify() {
          verified = await authorize(exchange, 'media:read', { isCounted: true })
        },
      })
      return { rows: firstOf(found, limit), caller: verified }
    } finally {
      waiting -= 1
      clearTimeout(timer)
      response.off('close', onEnd)
      closing.removeEventListener('abort', onEnd)
    }
  }

  async function list(exchange: Exchange): Promise<Reply | null> {
    const { headers } = exchange.request
    const caller = await authorize(exchange, 'media:read')
    const { since, after, ...query } = parseChangesQuery(exchange.query)
    const listed: ListedUrls | null = readListedUrls(exchange.query)
    if (prefersEvents(headers.accept)) {
      const sent = headers['last-event-id']?.toString() ?? ''
      // A refusal names the header, not the parameter that it replaces.
      if (sent !== '') feed.cursors.parse(caller.bucketId, sent, 'Last-Event-ID')
      return follow(exchange, caller, sent !== '' ? sent : (after ?? 'now'))
    }
    const { limit, wait } = query
    const { bucketId } = caller
    const first = Math.min(limit, reads.next(bucketId))
    const found = await read(exchange, caller, since ?? after, { limit: first, wait })
    const signer = signsUrls(found.caller, listed) ? await signLinks(null) : null
    const list = new ListTexts(
      (changes: readonly ItemChange[]) =>
        itemsText(serialize(changes.map((change) => describe(bucketId, change, signer)))),
      () => tickQueue.next(caller.tokenId),
    )
    let { rows } = found
    let next = rows.next
    for (;;) {
      const bytesBefore = list.bytes
      const added = await list.add(rows.changes)
      reads.note(bucketId, added, list.bytes - bytesBefore)
      const isFull = added < rows.changes.length
      next = isFull ? (rows.changes[added - 1]?.number ?? next) : rows.next
      const left = limit - list.count
      if (isFull || !rows.hasMore || left <= 0) {
        metrics.sentChanges.inc(list.count)
        const next_cursor = feed.cursors.format(bucketId, { number: next, seen: rows.seen })
        return listReply(caching, list.texts, { next_cursor, has_more: isFull || rows.hasMore })
      }
      await list.pause()
      rows = await feed.read(
        bucketId,
        feed.cursors.format(bucketId, { number: next, seen: rows.seen }),
        Math.min(left, reads.next(bucketId)),
      )
    }
  }

  return [route('GET', '/api/changes', openapi.listChanges, list)]
}

/** Milliseconds. */
const verifyInterval = 1_000

/** Up to `limit` of the changes. */
function firstOf(rows: ChangeRows, limit: number): ChangeRows {
  if (rows.changes.length <= limit) return rows
  const changes = rows.changes.slice(0, limit)
  return { ...rows, changes, next: changes.at(-1)?.number ?? rows.next, hasMore: true }
}
