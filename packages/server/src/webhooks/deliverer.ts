import type { Logger } from 'pino'
import type { SignLinks } from '../access/signed-links.ts'
import type { UrlSettings } from '../core/item-urls.ts'
import { PeriodicTask, resolvesWithin } from '../core/tasks.ts'
import { longestFailure, retryDelay, type WebhookId, type WebhookState } from '../core/webhook-rules.ts'
import type { Catalog } from '../storage/catalog/catalog.ts'
import type { ChangeRows } from '../storage/catalog/feed/feed.ts'
import {
  isWebhookWaiting,
  longestLease,
  passedAtOnce,
  passInterval,
  servedPerBucket,
  type WebhookAttempt,
} from '../storage/catalog/feed/webhook-deliveries.ts'
import type { WebhookReader } from '../storage/catalog/feed/webhooks.ts'
import type { BucketId } from '../storage/catalog/records.ts'
import { type Attempt, attempt } from './attempt.ts'
import { type Post, type Poster, requestTimeout } from './guarded-post.ts'
import { isWanted, lostMessageOf, type Message, messageOf } from './messages.ts'

type DelivererCatalog = Pick<
  Catalog,
  | 'epoch'
  | 'readChanges'
  | 'watchChanges'
  | 'findWebhook'
  | 'listWebhookBuckets'
  | 'dueWebhooks'
  | 'claimWebhook'
  | 'releaseWebhooks'
  | 'recordAttempt'
>

interface Parts {
  readonly catalog: DelivererCatalog
  readonly poster: Poster
  readonly urls: UrlSettings
  readonly signLinks: SignLinks
  /** Names this process in leases. A process that replaces one that has ended may have the same name, and then waits for no lease. */
  readonly owner: string
  readonly now: () => number
  readonly random: () => number
  readonly log: Pick<Logger, 'warn' | 'error'>
  readonly onDelivery: (isDelivered: boolean) => void
  /** Milliseconds between two searches for attempts to make: those whose time has come, and changes of which no bell rang. */
  readonly scanInterval?: number
}

const defaultScanInterval = 1_000

/** Milliseconds between two searches after bells. */
const bellDelay = 10

/** Milliseconds between two lines of the log about a failure. */
const logInterval = 60_000

/** Webhooks that are served at once. */
const maxServed = 128

/** Of these, those whose last attempt has taken longer than `slowAttempt` (ms): others do not wait for them. */
const maxSlow = 64
const slowAttempt = 2_000

/** Milliseconds for which a webhook is served before others have their turn. */
const turnTime = 5_000

/** A lease with less time left is taken again before a request, which must end within the lease. Milliseconds. */
const leastLease = requestTimeout + 5_000

/** Milliseconds for which changes that were read ahead are used: their media objects are as of then. */
const readAheadTime = 1_000

/** Milliseconds for which a stop waits for requests in progress. Those that it ends are repeated. */
const stopGrace = 3_000

/**
 * Delivers the changes of the feeds to webhooks (docs/interface.md WH5 to WH8). A position is stored after each delivery and nothing else, so
 * a process that ends at any moment repeats at most what it was sending.
 */
export function startDeliverer(parts: Parts): Deliverer {
  const deliverer = new Deliverer(parts)
  deliverer.start()
  return deliverer
}

class Deliverer {
  readonly #parts: Parts
  /** No further request begins. */
  readonly #stopping = new AbortController()
  /** The requests in progress end. */
  readonly #aborted = new AbortController()
  readonly #served = new Map<WebhookId, { readonly bucketId: BucketId; readonly ended: Promise<void> }>()
  /** Webhooks whose last attempt was slow. */
  readonly #slow = new Set<WebhookId>()
  /** When the lease of each webhook ends. */
  readonly #leases = new Map<WebhookId, number>()
  /** The buckets whose feeds are watched, each with the function that ends it. */
  readonly #watched = new Map<BucketId, () => void>()
  #scans: { stop(): Promise<void> } | null = null
  #isScanning = false
  #isAsked = false
  #bell: NodeJS.Timeout | null = null
  /** Bells that the feed has rung. */
  #rung = 0
  #lastFailure = Number.NEGATIVE_INFINITY

  constructor(parts: Parts) {
    this.#parts = parts
  }

  start(): void {
    this.#scans = new PeriodicTask({
      work: async () => {
        await this.#watchBuckets()
        if (this.#watched.size > 0) await this.#scan()
      },
      interval: this.#parts.scanInterval ?? defaultScanInterval,
      onFailure: (error) => this.#logFailure(error),
    })
  }

  async close(): Promise<void> {
    const { catalog, owner, log } = this.#parts
    // First, nothing new begins.
    this.#stopping.abort()
    if (this.#bell !== null) clearTimeout(this.#bell)
    await this.#scans?.stop()
    for (const stop of this.#watched.values()) stop()
    // Then the requests in progress end, by themselves or after the grace period.
    const ended = Promise.all([...this.#served.values()].map((one) => one.ended))
    if (!(await resolvesWithin(ended, stopGrace))) this.#aborted.abort()
    await ended
    await catalog
      .releaseWebhooks(owner)
      .catch((err: unknown) => log.warn({ err }, 'the leases of webhooks end by their time'))
  }

  #logFailure(err: unknown): void {
    const at = performance.now()
    if (at - this.#lastFailure < logInterval) return
    this.#lastFailure = at
    this.#parts.log.warn({ err }, 'webhooks cannot be served; the service tries again each second')
  }

  /** Watches the feeds of the buckets that have webhooks. */
  async #watchBuckets(): Promise<void> {
    const { catalog } = this.#parts
    const buckets = new Set(await catalog.listWebhookBuckets())
    for (const [id, stop] of this.#watched) {
      if (buckets.has(id)) continue
      stop()
      this.#watched.delete(id)
    }
    const onChange = () => {
      this.#rung += 1
      this.#ring()
    }
    for (const id of buckets)
      if (!this.#watched.has(id)) this.#watched.set(id, catalog.watchChanges(id, onChange))
  }

  /** Searches soon. */
  #ring(): void {
    if (this.#stopping.signal.aborted) return
    this.#bell ??= setTimeout(() => {
      this.#bell = null
      void this.#scan()
    }, bellDelay)
  }

  /** Serves the webhooks that have an attempt to make. */
  async #scan(): Promise<void> {
    const { catalog, owner, now } = this.#parts
    // A call during a search has it repeated.
    this.#isAsked = true
    if (this.#isScanning) return
    this.#isScanning = true
    try {
      while (this.#isAsked && !this.#stopping.signal.aborted && this.#served.size < maxServed) {
        this.#isAsked = false
        const due = await catalog.dueWebhooks(owner, now(), maxServed, this.#unwanted())
        for (const { id, bucketId } of due) {
          if (this.#stopping.signal.aborted) break
          if (this.#hasRoomFor(id, bucketId))
            this.#served.set(id, { bucketId, ended: this.#serve(id, bucketId) })
        }
      }
    } catch (error) {
      this.#logFailure(error)
    }
    this.#isScanning = false
  }

  /** Webhooks that a search leaves out, so that it finds those behind them. */
  #unwanted(): readonly WebhookId[] {
    return [...this.#served.keys(), ...(this.#servedSlow() >= maxSlow ? this.#slow : [])]
  }

  #hasRoomFor(id: WebhookId, bucketId: BucketId): boolean {
    if (this.#served.has(id) || this.#served.size >= maxServed) return false
    if (this.#slow.has(id) && this.#servedSlow() >= maxSlow) return false
    return !this.#isFull(bucketId)
  }

  #servedSlow(): number {
    return [...this.#served.keys()].filter((id) => this.#slow.has(id)).length
  }

  #isFull(bucketId: BucketId): boolean {
    return [...this.#served.values()].filter((one) => one.bucketId === bucketId).length >= servedPerBucket
  }

  async #serve(id: WebhookId, bucketId: BucketId): Promise<void> {
    const connection = this.#parts.poster.open()
    const before = this.#rung
    let hasMore = false
    try {
      hasMore = await new WebhookTurn(this.#parts, id, {
        post: async (...request) => {
          const result = await connection.post(...request)
          if (result.duration > slowAttempt) this.#slow.add(id)
          else this.#slow.delete(id)
          return result
        },
        leases: this.#leases,
        stopping: this.#stopping.signal,
        aborted: this.#aborted.signal,
      }).serve()
    } catch (error) {
      this.#logFailure(error)
    }
    connection.close()
    const wasFull = this.#served.size >= maxServed || this.#isFull(bucketId)
    this.#served.delete(id)
    // A bell may have rung after the last read. Others may wait for a place.
    if (hasMore || wasFull || this.#rung !== before || this.#slow.has(id)) this.#ring()
  }
}

/** Changes that were read after a position. */
interface ReadAhead {
  readonly position: number
  readonly rows: ChangeRows
  readonly time: number
}

/** What a webhook has to do next: a message, or changes to pass by, up to a position. Null if there is nothing. */
interface Step {
  readonly message: Message | null
  /** The position after it. */
  readonly position: number
  readonly ahead: ReadAhead | null
}

/** What a webhook uses of the deliverer while it is served. */
interface TurnParts {
  readonly post: Post
  /** When the lease of each webhook ends. */
  readonly leases: Map<WebhookId, number>
  /** No further request begins. */
  readonly stopping: AbortSignal
  /** The request in progress ends. */
  readonly aborted: AbortSignal
}

/** Serves one webhook, before others have their turn. */
class WebhookTurn {
  readonly #parts: Parts
  readonly #id: WebhookId
  readonly #turn: TurnParts
  #ahead: ReadAhead | null = null

  constructor(parts: Parts, id: WebhookId, turn: TurnParts) {
    this.#parts = parts
    this.#id = id
    this.#turn = turn
  }

  /** Delivers what there is, for a turn at most. False if there is nothing more to do now. */
  async serve(): Promise<boolean> {
    const { leases, stopping } = this.#turn
    const end = performance.now() + turnTime
    while (!stopping.aborted && performance.now() < end) {
      const at = this.#parts.now()
      const webhook = await this.#lease(at)
      if (webhook === null) return false
      if (isWebhookWaiting(webhook, at)) return false
      const step = await this.#nextStep(webhook)
      if (step === null) return false
      this.#ahead = step.ahead
      if (!(await this.#take(webhook, step))) {
        leases.delete(this.#id)
        return true
      }
    }
    return true
  }

  /** The webhook, with a lease that is long enough for a request; null if another process has it, or if it is off. */
  async #lease(at: number): Promise<WebhookReader | null> {
    const { catalog, owner } = this.#parts
    const { leases } = this.#turn
    const left = (leases.get(this.#id) ?? 0) - at
    // The clock can be set back.
    const isHeld = left >= leastLease && left <= longestLease
    const webhook = isHeld
      ? await catalog.findWebhook(this.#id)
      : await catalog.claimWebhook(this.#id, owner, longestLease)
    if (webhook === null || webhook.state !== 'on') {
      leases.delete(this.#id)
      return null
    }
    if (!isHeld) leases.set(this.#id, at + longestLease)
    return webhook
  }

  async #nextStep(webhook: WebhookReader): Promise<Step | null> {
    const { catalog, urls, signLinks, now } = this.#parts
    const { bucketId, position, pending, kinds, batch, signsUrls } = webhook
    const ahead = position === null ? null : await this.#readAfter(webhook, position)
    if (ahead === null) {
      // A receiver that lists the items after this message misses no change before the end of the feed.
      const end = await catalog.readChanges(bucketId, 'now', 0)
      const message = lostMessageOf(webhook, catalog.epoch, now())
      return end && { message, position: end.next, ahead: null }
    }
    // The kinds that the webhook wants, and after a failure only what the failed message had.
    const { rows } = ahead
    const wanted = rows.changes.filter(({ kind }) => isWanted(kinds, kind))
    const delivered = wanted.filter(({ number }) => pending === null || number <= pending).slice(0, batch)
    const last = delivered.at(-1)
    if (last === undefined) return passBy(rows, now())
    const isLast = last === wanted.at(-1)
    const signer = signsUrls ? await signLinks(null) : null
    const rest = rows.changes.filter(({ number }) => number > last.number)
    return {
      message: messageOf(webhook, delivered, { epoch: catalog.epoch, urls, signer }),
      position: isLast ? rows.next : last.number,
      // Fewer than a batch are read again, with those that follow.
      ahead:
        wanted.length - delivered.length < batch
          ? null
          : { ...ahead, rows: { ...rows, changes: rest }, position: last.number },
    }
  }

  /** The changes after a position, which may have been read before; null if the feed no longer has them. */
  async #readAfter({ bucketId, batch, kinds }: WebhookReader, position: number): Promise<ReadAhead | null> {
    const time = this.#parts.now()
    const before = this.#ahead
    if (before?.position === position && Math.abs(time - before.time) < readAheadTime) return before
    const limit = kinds.length === 0 ? batch : Math.max(batch, passedAtOnce)
    const rows = await this.#parts.catalog.readChanges(bucketId, position, limit)
    return rows && { position, rows, time }
  }

  /** Sends the message of a step, and stores what follows. False if the webhook has to wait, or has another owner. */
  async #take(webhook: WebhookReader, { message, position }: Step): Promise<boolean> {
    const { now, onDelivery } = this.#parts
    const { post, aborted } = this.#turn
    if (message === null) return this.#record(webhook, { outcome: { position }, delivery: null })
    const options = { post, signal: aborted, now, isManual: false }
    const { result, delivery } = await attempt(webhook, message, options)
    if (result.reason === null) {
      onDelivery(true)
      return this.#record(webhook, { outcome: { position }, delivery })
    }
    // The stop has ended the request, which says nothing about the receiver.
    if (aborted.aborted) return false
    onDelivery(false)
    await this.#recordFailure(webhook, message, { result, delivery })
    return false
  }

  /** Stores when the next attempt is made, or that there is none. */
  async #recordFailure(
    webhook: WebhookReader,
    message: Message,
    { result, delivery }: Attempt,
  ): Promise<void> {
    const { now, random, log } = this.#parts
    const failedAt = now()
    const failingFor = webhook.failingFor + waitBefore(webhook, failedAt)
    const state = stateAfter(result.status, failingFor)
    const nextAttempt = failedAt + retryDelay(webhook.failures + 1, random(), result.retryAfter)
    const pending = message.range?.last ?? null
    const { url, kinds, batch } = webhook
    const settings = { url, kinds, batch }
    const outcome = { failedAt, failingFor, pending, nextAttempt, state, settings }
    const isRecorded = await this.#record(webhook, { outcome, delivery })
    if (isRecorded && state !== 'on')
      log.error(
        { webhook: this.#id, state },
        state === 'gone'
          ? 'a webhook was switched off, because its receiver responded with 410'
          : 'a webhook was switched off, because its deliveries have failed for three days',
      )
  }

  #record(
    { position: from }: WebhookReader,
    recorded: Pick<WebhookAttempt, 'outcome' | 'delivery'>,
  ): Promise<boolean> {
    const { catalog, owner } = this.#parts
    return catalog.recordAttempt({ id: this.#id, owner, from, ...recorded })
  }
}

/**
 * Milliseconds between the failed attempts before one at `now`, and at most what was planned: a clock that is set, and the sleep of a machine, are no
 * time in which the receiver failed.
 */
const waitBefore = (
  { attemptedAt, nextAttempt }: Pick<WebhookReader, 'attemptedAt' | 'nextAttempt'>,
  now: number,
): number =>
  attemptedAt === null || nextAttempt === null
    ? 0
    : Math.max(0, Math.min(now - attemptedAt, nextAttempt - attemptedAt))

/** `failing` is how long deliveries have failed. Milliseconds. */
function stateAfter(status: number | null, failing: number): WebhookState {
  if (status === 410) return 'gone'
  return failing >= longestFailure ? 'failed' : 'on'
}

/** Stores the position for many changes of other kinds at once, or after a while. */
function passBy({ changes: [first], next, hasMore }: ChangeRows, now: number): Step | null {
  if (first === undefined || (!hasMore && now - first.time < passInterval)) return null
  return { message: null, position: next, ahead: null }
}
