import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import { Fault } from '../core/faults.ts'
import type { Caller } from '../http/authorizer.ts'
import type { HttpContext } from '../http/context.ts'
import type { Exchange } from '../http/route.ts'
import type { ItemChange } from '../storage/catalog/feed.ts'
import type { TokenId } from '../storage/catalog/records.ts'
import type { Feed, FollowedBucket } from './changes.ts'

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

/** Returns what formats changes for a caller: each as the text of an event. */
export type EventFormatter = (caller: Caller) => Promise<(change: ItemChange) => string>

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

/** Server-Sent Events (https://html.spec.whatwg.org/multipage/server-sent-events.html) of the feeds. */
export function createEventStreams(
  {
    authorize,
    closing,
    log,
    metrics,
    turns,
  }: Pick<HttpContext, 'authorize' | 'closing' | 'log' | 'metrics' | 'turns'>,
  parts: { readonly feed: Feed; readonly eventFormatter: EventFormatter; readonly idleTimeout: number },
) {
  const { feed, eventFormatter, idleTimeout } = parts
  const silence = Math.min(longestSilence, idleTimeout / 3)
  const streams = new Set<EventStream>()
  let timer: NodeJS.Timeout | null = null

  function write(stream: EventStream, text: string): void {
    stream.exchange.response.write(text)
    stream.sentAt = performance.now()
  }

  function end(stream: EventStream): void {
    streams.delete(stream)
    stream.bucket.stop()
    stream.exchange.response.end(`retry: ${Math.round(retryDelay + Math.random() * retrySpread)}\n\n`)
  }

  /** By the Authorization header. A thousand streams of one token would each leave garbage behind, once a second. */
  let verifications = new Map<string, Promise<Caller>>()
  let sharedSince = 0

  /** Ends the stream, unless the error is temporary. */
  function fail(stream: EventStream, err: unknown): void {
    if (isTemporary(err) || !streams.has(stream)) return
    if (!(err instanceof Fault))
      log.error({ requestId: stream.exchange.id, err }, 'a stream of changes was ended')
    end(stream)
  }

  async function verify(stream: EventStream): Promise<void> {
    const { exchange } = stream
    const now = performance.now()
    if (now - sharedSince > sharedFor) {
      verifications = new Map()
      sharedSince = now
    }
    const header = exchange.request.headers.authorization ?? ''
    const verification = verifications.get(header) ?? authorize(exchange, 'media:read', { isCounted: true })
    verifications.set(header, verification)
    stream.caller = await verification
    stream.verifiedAt = performance.now()
  }

  /** Characters that streams have made in this iteration of the event loop. */
  let made = 0

  /**
   * Resolves when the stream may make a batch. Most notifications are small, and are sent at once. A burst of streams that catch up would keep
   * all other requests waiting.
   */
  async function takeTurn(stream: EventStream): Promise<void> {
    if (made >= maxUnsent) await turns.next(stream.caller.tokenId)
  }

  function countMade(length: number): void {
    if (made === 0)
      setImmediate(() => {
        made = 0
      })
    made += length
  }

  /** Sends the first changes, up to the bytes that a stream may hold, and continues after them. Returns whether these are all. */
  function sendBatch(
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
    countMade(text.length)
    metrics.sentChanges.inc(count)
    stream.bucket.expect(text.length / count, maxUnsent)
    return count === changes.length
  }

  /** Sends what follows, until there is nothing more. */
  async function sendChanges(stream: EventStream): Promise<void> {
    const { exchange, bucket } = stream
    const { response } = exchange
    while (streams.has(stream)) {
      if (response.writableLength > maxUnsent) await drainOrClose(response)
      if (!streams.has(stream)) return
      const rows = await bucket.read(stream.position)
      // The client has read so slowly that its next change is not kept any more. When it connects again, it gets the problem.
      if (rows === null) return end(stream)
      if (rows.changes.length > 0) {
        if (performance.now() - stream.verifiedAt > verifyInterval) await verify(stream)
        const format = await eventFormatter(stream.caller)
        await takeTurn(stream)
        if (!streams.has(stream)) return
        if (!sendBatch(stream, rows.changes, format)) continue
      }
      stream.position = rows.next
      if (!rows.hasMore) return
    }
  }

  async function send(stream: EventStream): Promise<void> {
    stream.isBehind = true
    if (stream.isSending) return
    stream.isSending = true
    try {
      while (stream.isBehind && streams.has(stream)) {
        stream.isBehind = false
        await sendChanges(stream)
      }
    } catch (error) {
      stream.isBehind = true
      fail(stream, error)
    } finally {
      stream.isSending = false
    }
  }

  async function tend(stream: EventStream): Promise<void> {
    if (!streams.has(stream)) return
    const now = performance.now()
    try {
      if (now - stream.verifiedAt >= verifyInterval) await verify(stream)
      if (!streams.has(stream)) return
      if (now - stream.sentAt >= silence) write(stream, ':\n\n')
      if (stream.isBehind && !stream.isSending) void send(stream)
    } catch (error) {
      fail(stream, error)
    }
  }

  async function tendAll(): Promise<void> {
    const all = [...streams]
    for (let done = 0; done < all.length; done += streamsPerTurn) {
      await Promise.all(all.slice(done, done + streamsPerTurn).map(tend))
      await new Promise((resolve) => setImmediate(resolve))
    }
    timer = null
    schedule()
  }

  function schedule(): void {
    if (timer !== null || streams.size === 0) return
    timer = setTimeout(() => void tendAll(), verifyInterval)
    timer.unref()
  }

  closing.addEventListener('abort', () => {
    for (const stream of [...streams]) end(stream)
  })

  return {
    count: () => streams.size,

    /** Begins the response with the changes after a number, from which the feed was read. */
    open(exchange: Exchange, caller: Caller, after: number, headers: Readonly<Record<string, string>>): void {
      const { response } = exchange
      // The client has gone while its token was verified: the response does not emit `close` again.
      if (response.closed) return
      const now = performance.now()
      const bucket = feed.follow(caller.bucketId, () => void send(stream))
      const stream: EventStream = {
        ...{ exchange, bucket, caller, position: after, verifiedAt: now, sentAt: now },
        ...{ isSending: false, isBehind: false },
      }
      streams.add(stream)
      response.once('close', () => {
        if (streams.delete(stream)) bucket.stop()
      })
      response.writeHead(200, { ...headers })
      // An event without data is not dispatched, but its id is remembered: a client that connects again continues from here.
      write(stream, `retry: ${retryDelay}\nid: ${feed.cursors.format(caller.bucketId, after)}\n\n`)
      if (closing.aborted) end(stream)
      else void send(stream)
      schedule()
    },
  }
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
export function createStreamLimits(
  limits: { readonly perToken: number; readonly perAddress: number },
  onRefusal: () => void,
) {
  const [tokens, addresses] = [createCounter(limits.perToken), createCounter(limits.perAddress)]
  return {
    /** Counts a response until it has ended. Throws Fault `streams-too-many`. */
    count(response: ServerResponse, tokenId: TokenId, address: string): void {
      if (response.closed) return
      if (!tokens.hasRoom(tokenId) || !addresses.hasRoom(address)) {
        onRefusal()
        const who = tokens.hasRoom(tokenId) ? 'Your address' : 'This token'
        throw new Fault(
          'streams-too-many',
          `${who} has as many open streams of changes and waiting requests as the service accepts. Close some of them.`,
          { members: { maximum: tokens.hasRoom(tokenId) ? limits.perAddress : limits.perToken } },
        )
      }
      tokens.add(tokenId, 1)
      addresses.add(address, 1)
      response.once('close', () => {
        tokens.add(tokenId, -1)
        addresses.add(address, -1)
      })
    },
  }
}

function createCounter(limit: number) {
  const counts = new Map<string, number>()
  return {
    hasRoom: (key: string) => limit === 0 || (counts.get(key) ?? 0) < limit,
    add(key: string, more: number): void {
      const count = (counts.get(key) ?? 0) + more
      if (count > 0) counts.set(key, count)
      else counts.delete(key)
    },
  }
}
