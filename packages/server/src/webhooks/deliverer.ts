import type { Logger } from 'pino'
import type { SignLinks } from '../access/signed-links.ts'
import type { UrlSettings } from '../core/item-urls.ts'
import { resolvesWithin, startPeriodicTask } from '../core/tasks.ts'
import { longestFailure, retryDelay, type WebhookId, type WebhookState } from '../core/webhooks.ts'
import type { Catalog } from '../storage/catalog/catalog.ts'
import type { ChangeRows, FeedCatalog } from '../storage/catalog/feed.ts'
import type { BucketId } from '../storage/catalog/records.ts'
import {
  isWebhookWaiting,
  longestLease,
  passedAtOnce,
  passInterval,
  servedPerBucket,
  type WebhookAttempt,
} from '../storage/catalog/webhook-deliveries.ts'
import type { WebhookReader } from '../storage/catalog/webhooks.ts'
import { attempt } from './attempt.ts'
import { type Post, type Poster, requestTimeout } from './guarded-post.ts'
import { isWanted, lostMessageOf, type Message, messageOf } from './messages.ts'

type DelivererCatalog = FeedCatalog &
  Pick<
    Catalog,
    | 'epoch'
    | 'webhook'
    | 'webhookBuckets'
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
const turn = 5_000

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
export function startDeliverer(parts: Parts): { close(): Promise<void> } {
  const { catalog, owner, now, log, scanInterval = defaultScanInterval } = parts
  const stopping = new AbortController()
  const aborted = new AbortController()
  const served = new Map<WebhookId, { readonly bucketId: BucketId; readonly ended: Promise<void> }>()
  /** Webhooks whose last attempt was slow. */
  const slow = new Set<WebhookId>()
  /** When the lease of each webhook ends. */
  const leases = new Map<WebhookId, number>()
  const watched = new Map<BucketId, () => void>()
  let isScanning = false
  let isAsked = false
  let bell: NodeJS.Timeout | null = null
  /** Bells that the feed has rung. */
  let rung = 0

  let lastFailure = Number.NEGATIVE_INFINITY
  function onFailure(err: unknown): void {
    const at = performance.now()
    if (at - lastFailure < logInterval) return
    lastFailure = at
    log.warn({ err }, 'webhooks cannot be served; the service tries again each second')
  }

  async function watchBuckets(): Promise<void> {
    const buckets = new Set(await catalog.webhookBuckets())
    for (const [id, stop] of watched) {
      if (buckets.has(id)) continue
      stop()
      watched.delete(id)
    }
    for (const id of buckets) if (!watched.has(id)) watched.set(id, catalog.watchChanges(id, onChange))
  }

  function onChange(): void {
    rung += 1
    ring()
  }

  function ring(): void {
    if (stopping.signal.aborted) return
    bell ??= setTimeout(() => {
      bell = null
      void scan()
    }, bellDelay)
  }

  /** Serves the webhooks that have an attempt to make. */
  async function scan(): Promise<void> {
    isAsked = true
    if (isScanning) return
    isScanning = true
    try {
      while (isAsked && !stopping.signal.aborted && served.size < maxServed) {
        isAsked = false
        for (const { id, bucketId } of await catalog.dueWebhooks(owner, now(), maxServed, unwanted())) {
          if (stopping.signal.aborted) break
          if (hasRoomFor(id, bucketId)) served.set(id, { bucketId, ended: serve(id, bucketId) })
        }
      }
    } catch (error) {
      onFailure(error)
    }
    isScanning = false
  }

  const servedSlow = (): number => [...served.keys()].filter((id) => slow.has(id)).length

  /** Webhooks that a search leaves out, so that it finds those behind them. */
  function unwanted(): readonly WebhookId[] {
    return [...served.keys(), ...(servedSlow() >= maxSlow ? slow : [])]
  }

  function hasRoomFor(id: WebhookId, bucketId: BucketId): boolean {
    if (served.has(id) || served.size >= maxServed) return false
    if (slow.has(id) && servedSlow() >= maxSlow) return false
    return !isFull(bucketId)
  }

  const isFull = (bucketId: BucketId): boolean =>
    [...served.values()].filter((one) => one.bucketId === bucketId).length >= servedPerBucket

  async function serve(id: WebhookId, bucketId: BucketId): Promise<void> {
    const connection = parts.poster.open()
    const before = rung
    let hasMore = false
    try {
      hasMore = await serveTurn(parts, id, leases, {
        async post(...request) {
          const result = await connection.post(...request)
          if (result.duration > slowAttempt) slow.add(id)
          else slow.delete(id)
          return result
        },
        stopping: stopping.signal,
        aborted: aborted.signal,
      })
    } catch (error) {
      onFailure(error)
    }
    connection.close()
    const wasFull = served.size >= maxServed || isFull(bucketId)
    served.delete(id)
    // A bell may have rung after the last read. Others may wait for a place.
    if (hasMore || wasFull || rung !== before || slow.has(id)) ring()
  }

  const scans = startPeriodicTask({
    async work() {
      await watchBuckets()
      if (watched.size > 0) await scan()
    },
    interval: scanInterval,
    onFailure,
  })

  return {
    async close() {
      stopping.abort()
      if (bell !== null) clearTimeout(bell)
      await scans.stop()
      for (const stop of watched.values()) stop()
      const ended = Promise.all([...served.values()].map((one) => one.ended))
      if (!(await resolvesWithin(ended, stopGrace))) aborted.abort()
      await ended
      await catalog
        .releaseWebhooks(owner)
        .catch((err: unknown) => log.warn({ err }, 'the leases of webhooks end by their time'))
    },
  }
}

interface Turn {
  readonly post: Post
  /** No further request begins. */
  readonly stopping: AbortSignal
  /** The request in progress ends. */
  readonly aborted: AbortSignal
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

/** Delivers what there is, for a turn at most. False if there is nothing more to do now. */
async function serveTurn(
  parts: Parts,
  id: WebhookId,
  leases: Map<WebhookId, number>,
  { post, stopping, aborted }: Turn,
): Promise<boolean> {
  const { catalog, owner, now } = parts
  const end = performance.now() + turn
  let ahead: ReadAhead | null = null

  while (!stopping.aborted && performance.now() < end) {
    const at = now()
    const left = (leases.get(id) ?? 0) - at
    // The clock can be set back.
    const isHeld = left >= leastLease && left <= longestLease
    const webhook = isHeld ? await catalog.webhook(id) : await catalog.claimWebhook(id, owner, longestLease)
    if (webhook === null || webhook.state !== 'on') {
      leases.delete(id)
      return false
    }
    if (!isHeld) leases.set(id, at + longestLease)
    if (isWebhookWaiting(webhook, at)) return false
    const step = await nextStep(parts, webhook, ahead)
    if (step === null) return false
    ahead = step.ahead
    if (!(await take(parts, webhook, step, { post, aborted }))) {
      leases.delete(id)
      return true
    }
  }
  return true
}

/** Sends the message of a step, and stores what follows. False if the webhook has to wait, or has another owner. */
async function take(
  { catalog, owner, now, random, onDelivery, log }: Parts,
  { id, url, secrets, position: from, failures, ...past }: WebhookReader,
  { message, position }: Step,
  { post, aborted }: Pick<Turn, 'post' | 'aborted'>,
): Promise<boolean> {
  const record = (recorded: Pick<WebhookAttempt, 'outcome' | 'delivery'>) =>
    catalog.recordAttempt({ id, owner, from, ...recorded })

  if (message === null) return record({ outcome: { position }, delivery: null })
  const { result, delivery } = await attempt({ url, secrets }, message, {
    post,
    signal: aborted,
    now,
    isManual: false,
  })
  if (result.reason === null) {
    onDelivery(true)
    return record({ outcome: { position }, delivery })
  }
  if (aborted.aborted) return false
  onDelivery(false)
  const failedAt = now()
  const failingFor = past.failingFor + waitBefore(past, failedAt)
  const state = stateAfter(result.status, failingFor)
  const nextAttempt = failedAt + retryDelay(failures + 1, random(), result.retryAfter)
  const pending = message.range?.last ?? null
  await record({ outcome: { failedAt, failingFor, pending, nextAttempt, state }, delivery })
  if (state !== 'on')
    log.error(
      { webhook: id, state },
      state === 'gone'
        ? 'a webhook was switched off, because its receiver responded with 410'
        : 'a webhook was switched off, because its deliveries have failed for three days',
    )
  return false
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

async function nextStep(
  parts: Parts,
  webhook: WebhookReader,
  before: ReadAhead | null,
): Promise<Step | null> {
  const { catalog, urls, signLinks, now } = parts
  const { bucketId, position, pending, kinds, batch, signsUrls } = webhook
  const ahead = position === null ? null : await readAfter(parts, webhook, position, before)
  if (ahead === null) {
    // A receiver that lists the items after this message misses no change before the end of the feed.
    const end = await catalog.readChanges(bucketId, 'now', 0)
    const message = lostMessageOf(webhook, catalog.epoch, now())
    return end && { message, position: end.next, ahead: null }
  }
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

/** Stores the position for many changes of other kinds at once, or after a while. */
function passBy({ changes: [first], next, hasMore }: ChangeRows, now: number): Step | null {
  if (first === undefined || (!hasMore && now - first.time < passInterval)) return null
  return { message: null, position: next, ahead: null }
}

/** The changes after a position, which may have been read before; null if the feed no longer has them. */
async function readAfter(
  { catalog, now }: Pick<Parts, 'catalog' | 'now'>,
  { bucketId, batch, kinds }: WebhookReader,
  position: number,
  before: ReadAhead | null,
): Promise<ReadAhead | null> {
  const time = now()
  if (before?.position === position && Math.abs(time - before.time) < readAheadTime) return before
  const limit = kinds.length === 0 ? batch : Math.max(batch, passedAtOnce)
  const rows = await catalog.readChanges(bucketId, position, limit)
  return rows && { position, rows, time }
}
