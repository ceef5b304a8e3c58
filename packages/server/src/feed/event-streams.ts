import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import { requireSameBucket } from '../access/token-operations.ts'
import { Fault } from '../core/faults.ts'
import type { Caller } from '../http/authorizer.ts'
import type { HttpContext } from '../http/context.ts'
import { namedBucket } from '../http/headers.ts'
import type { Exchange } from '../http/route.ts'
import type { FeedPosition, ItemChange } from '../storage/catalog/feed/feed.ts'
import type { TokenId } from '../storage/catalog/records.ts'
import type { Feed, FollowedBucket } from './change-feed.ts'

/** Milliseconds between two verifications of the token of a stream, and between two comments that keep its connection open. */
const verifyInterval = 800
/** Milliseconds for which streams of one token share a verification. */
const sharedFor = 200
const longestSilence = 15_000
/** Streams that one iteration of the event loop verifies. */
const streamsPerTurn = 50
/** Bytes of a stream that its client has not received. Then nothing more is read for it. */
const maxUnsent = 64 * 1024
/** Milliseconds after which clients connect again: soon, and not all at once after a stop. */
const retryDelay = 1_000
const retrySpread = 2_000

/** Returns what formats changes for the caller of a request: each as the text of an event. */
export type EventFormatter = (
  caller: Caller,
  exchange: Pick<Exchange, 'query'>,
) => Promise<(change: ItemChange) => string>

interface EventStream {
  readonly exchange: Exchange
  readonly bucket: FollowedBucket
  /** The number after which the stream continues. */
  position: number
  caller: Caller
  /** Times of performance.now(). */
  verifiedAt: number
  sentAt: number
  isSending: boolean
  /** Whether there may be changes that were not read. */
  isBehind: boolean
}

type StreamContext = Pick<HttpContext, 'authorize' | 'closing' | 'log' | 'metrics' | 'tickQueue'>

interface StreamParts {
  readonly feed: Feed
  readonly eventFormatter: EventFormatter
  readonly idleTimeout: number
}

/** Server-Sent Events (https://html.spec.whatwg.org/multipage/server-sent-events.html) of the feeds. */
export class EventStreams {
  readonly #http: StreamContext
  readonly #feed: Feed
  readonly #eventFormatter: EventFormatter
  /** Milliseconds after which a comment is sent. */
  readonly #silence: number
  readonly #streams = new Set<EventStream>()
  #timer: NodeJS.Timeout | null = null
  /** By the Authorization header, and the bucket that the request names. A thousand streams of one token would each leave garbage behind, once a second. */
  #verifications = new Map<string, Promise<Caller>>()
  #sharedSince = 0
  /** Characters that streams have made in this iteration of the event loop. */
  #made = 0

  constructor(http: StreamContext, { feed, eventFormatter, idleTimeout }: StreamParts) {
    this.#http = http
    this.#feed = feed
    this.#eventFormatter = eventFormatter
    this.#silence = Math.min(longestSilence, idleTimeout / 3)
    http.closing.addEventListener('abort', () => {
      for (const stream of [...this.#streams]) this.#end(stream)
    })
  }

  count(): number {
    return this.#streams.size
  }

  /** Begins the response with the changes after a position, from which the feed was read. */
  open(
    exchange: Exchange,
    caller: Caller,
    after: FeedPosition,
    headers: Readonly<Record<string, string>>,
  ): void {
    const { response } = exchange
    // The client has gone while its token was verified: the response does not emit `close` again.
    if (response.closed) return
    const now = performance.now()
    const bucket = this.#feed.follow(caller.bucketId, () => void this.#send(stream))
    const stream: EventStream = {
      ...{ exchange, bucket, caller, position: after.number, verifiedAt: now, sentAt: now },
      ...{ isSending: false, isBehind: false },
    }
    this.#streams.add(stream)
    response.once('close', () => {
      if (this.#streams.delete(stream)) bucket.stop()
    })
    response.writeHead(200, { ...headers })
    // An event without data is not dispatched, but its id is remembered: a client that connects again continues from here.
    write(stream, `retry: ${retryDelay}\nid: ${this.#feed.cursors.format(caller.bucketId, after)}\n\n`)
    if (this.#http.closing.aborted) this.#end(stream)
    else void this.#send(stream)
    this.#schedule()
  }

  #end(stream: EventStream): void {
    this.#streams.delete(stream)
    stream.bucket.stop()
    stream.exchange.response.end(`retry: ${Math.round(retryDelay + Math.random() * retrySpread)}\n\n`)
  }

  /** Ends the stream, unless the error is temporary. */
  #fail(stream: EventStream, err: unknown): void {
    if (isTemporary(err) || !this.#streams.has(stream)) return
    if (!(err instanceof Fault))
      this.#http.log.error({ requestId: stream.exchange.id, err }, 'a stream of changes was ended')
    this.#end(stream)
  }

  /** Sends what there is. A call during another one has it look again. */
  async #send(stream: EventStream): Promise<void> {
    stream.isBehind = true
    if (stream.isSending) return
    stream.isSending = true
    try {
      while (stream.isBehind && this.#streams.has(stream)) {
        stream.isBehind = false
        await this.#sendChanges(stream)
      }
    } catch (error) {
      stream.isBehind = true
      this.#fail(stream, error)
    } finally {
      stream.isSending = false
    }
  }

  /** Sends what follows, until there is nothing more. */
  async #sendChanges(stream: EventStream): Promise<void> {
    const { exchange, bucket } = stream
    const { response } = exchange
    while (this.#streams.has(stream)) {
      if (response.writableLength > maxUnsent) await drainOrClose(response)
      if (!this.#streams.has(stream)) return
      const rows = await bucket.read(stream.position)
      // The client has read so slowly that its next change is not kept any more. When it connects again, it gets the problem.
      if (rows === null) return this.#end(stream)
      if (rows.changes.length > 0) {
        // No change is sent after the token has lost its scope for longer than the interval.
        if (performance.now() - stream.verifiedAt > verifyInterval) await this.#verify(stream)
        const format = await this.#eventFormatter(stream.caller, stream.exchange)
        await this.#takeTurn(stream)
        if (!this.#streams.has(stream)) return
        if (!this.#sendBatch(stream, rows.changes, format)) continue
      }
      stream.position = rows.next
      if (!rows.hasMore) return
    }
  }

  /** Sends the first changes, up to the bytes that a stream may hold, and continues after them. Returns whether these are all. */
  #sendBatch(
    stream: EventStream,
    changes: readonly ItemChange[],
    format: (change: ItemChange) => string,
  ): boolean {
    let text = ''
    let count = 0
    for (const change of changes) {
      if (text.length >= maxUnsent) break
      text += format(change)
      count += 1
      stream.position = change.number
    }
    write(stream, text)
    this.#countMade(text.length)
    this.#http.metrics.sentChanges.inc(count)
    stream.bucket.expect(text.length / count, maxUnsent)
    return count === changes.length
  }

  async #verify(stream: EventStream): Promise<void> {
    const { exchange } = stream
    const now = performance.now()
    if (now - this.#sharedSince > sharedFor) {
      this.#verifications = new Map()
      this.#sharedSince = now
    }
    const { request } = exchange
    const name = `${request.headers.authorization}\n${namedBucket(request)}`
    const verification =
      this.#verifications.get(name) ?? this.#http.authorize(exchange, 'media:read', { isCounted: true })
    this.#verifications.set(name, verification)
    const caller = await verification
    requireSameBucket(caller, stream.caller)
    stream.caller = caller
    stream.verifiedAt = performance.now()
  }

  /**
   * Resolves when the stream may make a batch. Most notifications are small, and are sent at once. A burst of streams that catch up would keep
   * all other requests waiting.
   */
  async #takeTurn(stream: EventStream): Promise<void> {
    if (this.#made >= maxUnsent) await this.#http.tickQueue.next(stream.caller.tokenId)
  }

  #countMade(length: number): void {
    if (this.#made === 0)
      setImmediate(() => {
        this.#made = 0
      })
    this.#made += length
  }

  #schedule(): void {
    if (this.#timer !== null || this.#streams.size === 0) return
    this.#timer = setTimeout(() => void this.#tendAll(), verifyInterval)
    this.#timer.unref()
  }

  async #tendAll(): Promise<void> {
    const all = [...this.#streams]
    for (let done = 0; done < all.length; done += streamsPerTurn) {
      await Promise.all(all.slice(done, done + streamsPerTurn).map((stream) => this.#tend(stream)))
      await new Promise((resolve) => setImmediate(resolve))
    }
    this.#timer = null
    this.#schedule()
  }

  /** Verifies the token, keeps the connection open, and reads again what a temporary error has left. */
  async #tend(stream: EventStream): Promise<void> {
    if (!this.#streams.has(stream)) return
    const now = performance.now()
    try {
      if (now - stream.verifiedAt >= verifyInterval) await this.#verify(stream)
      if (!this.#streams.has(stream)) return
      if (now - stream.sentAt >= this.#silence) write(stream, ':\n\n')
      if (stream.isBehind && !stream.isSending) void this.#send(stream)
    } catch (error) {
      this.#fail(stream, error)
    }
  }
}

function write(stream: EventStream, text: string): void {
  stream.exchange.response.write(text)
  stream.sentAt = performance.now()
}

/** Leaves no listeners, because a slow stream waits many times. */
async function drainOrClose(response: ServerResponse): Promise<void> {
  const waiting = new AbortController()
  const { signal } = waiting
  try {
    await Promise.race([once(response, 'drain', { signal }), once(response, 'close', { signal })])
  } finally {
    waiting.abort()
  }
}

/** Whether the stream can go on later: the database is busy or cannot be reached. */
const isTemporary = (error: unknown): boolean =>
  error instanceof Fault && ['catalog-busy', 'catalog-unavailable', 'overloaded'].includes(error.code)

/** Counts the responses of a token, and of an address, that stay open. A limit of 0 is none. */
export class StreamLimits {
  readonly #tokens: OpenCounter
  readonly #addresses: OpenCounter
  readonly #onRefusal: () => void

  constructor(
    { perToken, perAddress }: { readonly perToken: number; readonly perAddress: number },
    onRefusal: () => void,
  ) {
    this.#tokens = new OpenCounter(perToken)
    this.#addresses = new OpenCounter(perAddress)
    this.#onRefusal = onRefusal
  }

  /** Counts a response until it has ended. Throws Fault `streams-too-many`. */
  count(response: ServerResponse, tokenId: TokenId, address: string): void {
    if (response.closed) return
    const [tokens, addresses] = [this.#tokens, this.#addresses]
    if (!tokens.hasRoom(tokenId) || !addresses.hasRoom(address)) {
      this.#onRefusal()
      const [who, { limit }] = tokens.hasRoom(tokenId)
        ? (['Your address', addresses] as const)
        : (['This token', tokens] as const)
      throw new Fault(
        'streams-too-many',
        `${who} has as many open streams of changes and waiting requests as the service accepts. Close some of them.`,
        { members: { maximum: limit } },
      )
    }
    tokens.add(tokenId, 1)
    addresses.add(address, 1)
    response.once('close', () => {
      tokens.add(tokenId, -1)
      addresses.add(address, -1)
    })
  }
}

class OpenCounter {
  readonly limit: number
  readonly #counts = new Map<string, number>()

  constructor(limit: number) {
    this.limit = limit
  }

  hasRoom(key: string): boolean {
    return this.limit === 0 || (this.#counts.get(key) ?? 0) < this.limit
  }

  add(key: string, more: number): void {
    const count = (this.#counts.get(key) ?? 0) + more
    if (count > 0) this.#counts.set(key, count)
    else this.#counts.delete(key)
  }
}
