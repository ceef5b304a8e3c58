import { randomUUID } from 'node:crypto'
import type { Client } from 'pg'
import { createFeedBell, type FeedBell } from '../../feed/feed-bell.ts'
import type { BucketId } from '../../records.ts'
import { bucketIdOf } from '../../statements.ts'
import type { Connections } from './connections.ts'

const channel = 'mediabucket_changes'
/** Any user of the database can send notifications. */
const idShape = /^[1-9]\d{0,14}$/

/** Milliseconds: changes within this time share a notification. */
const notificationDelay = 10
/** Milliseconds between two notifications: under many uploads, each costs as much as some of them. */
const notificationInterval = 50
/** The longest payload of a notification is 8,000 bytes. Without ids, all watched buckets are compared. */
const idsPerNotification = 400
/** Milliseconds between two comparisons of revisions, which find the changes of lost notifications. */
const interval = 1_000
/** The same if no notifications are received, for example behind a connection pooler. */
const deafInterval = 100
/** Milliseconds in which a notification of this process must be received before others are relied on. */
const testTimeout = 2_000
/** Milliseconds until the next attempt to listen. */
const retryInterval = 30_000
const lostRetryInterval = 500

/**
 * Notifies the other processes with NOTIFY, and listens while buckets are watched. The notification is no part of the transaction of the change:
 * PostgreSQL lets transactions that notify commit one after the other.
 */
export class PostgresBell {
  readonly #connections: Pick<Connections, 'read' | 'openClient'>
  readonly #bell: FeedBell
  readonly #self = randomUUID()
  readonly #pending = new Set<BucketId>()
  #isAnyPending = false
  #timer: NodeJS.Timeout | null = null
  #lastSent = 0
  #sending: Promise<unknown> = Promise.resolve()
  #listener: Listener | null = null

  constructor(
    connections: Pick<Connections, 'read' | 'openClient'>,
    revisions: (ids: readonly BucketId[]) => Promise<readonly (readonly [BucketId, number])[]>,
  ) {
    this.#connections = connections
    this.#bell = createFeedBell({
      revisions,
      interval: () => (this.#listener?.hears() ? interval : deafInterval),
    })
  }

  /** As FeedBell. */
  watch(bucketId: BucketId, onChange: () => void): () => void {
    this.#listener ??= listen({
      open: () => this.#connections.openClient(),
      test: () => this.#notify(`${this.#self} `),
      self: this.#self,
      receive: (payload) => this.#receive(payload),
    })
    return this.#bell.watch(bucketId, onChange)
  }

  /** As FeedBell, for all processes. */
  ring(bucketId: BucketId): void {
    this.#bell.ring(bucketId)
    this.#pending.add(bucketId)
    this.#announce()
  }

  /** As FeedBell, for all processes. */
  check(): void {
    this.#bell.check()
    this.#isAnyPending = true
    this.#announce()
  }

  async close(): Promise<void> {
    this.#bell.close()
    if (this.#timer !== null) {
      clearTimeout(this.#timer)
      this.#send()
    }
    await Promise.all([this.#sending, this.#listener?.close()])
  }

  #notify(payload: string): Promise<unknown> {
    return this.#connections.read((session) =>
      // It is not worth a sync: what it tells is in the table.
      session.run(
        "SELECT set_config('synchronous_commit', 'off', true), pg_notify($1, $2)",
        channel,
        payload,
      ),
    )
  }

  #receive(payload: string): void {
    const [sender, ids = ''] = payload.split(' ')
    if (sender === this.#self) return
    if (ids === '') this.#bell.check()
    else for (const id of ids.split(',')) if (idShape.test(id)) this.#bell.ring(bucketIdOf([Number(id)], 0))
  }

  #announce(): void {
    this.#timer ??= setTimeout(
      () => this.#send(),
      Math.max(notificationDelay, this.#lastSent + notificationInterval - performance.now()),
    )
  }

  #send(): void {
    this.#timer = null
    this.#lastSent = performance.now()
    const isAny = this.#isAnyPending || this.#pending.size > idsPerNotification
    const ids = isAny ? '' : [...this.#pending].join(',')
    this.#isAnyPending = false
    this.#pending.clear()
    // A lost notification costs time: watchers compare the revisions.
    this.#sending = this.#notify(`${this.#self} ${ids}`).catch(() => undefined)
  }
}

interface Listener {
  /** Whether notifications are received. */
  hears(): boolean
  close(): Promise<void>
}

/** Listens on a connection of its own, and opens another one when it is lost. */
function listen(parts: {
  readonly open: () => Promise<Client>
  /** Sends a notification that this listener receives. */
  readonly test: () => Promise<unknown>
  readonly self: string
  readonly receive: (payload: string) => void
}): Listener {
  let hasHeard = false
  let isClosed = false
  let client: Client | null = null
  let retryTimer: NodeJS.Timeout | null = null
  let testTimer: NodeJS.Timeout | null = null
  let starting = start()

  function retry(delay: number): void {
    hasHeard = false
    if (isClosed || retryTimer !== null) return
    retryTimer = setTimeout(() => {
      retryTimer = null
      starting = start()
    }, delay)
    retryTimer.unref()
  }

  async function start(): Promise<void> {
    try {
      const opened = await parts.open()
      if (isClosed) return void (await opened.end())
      client = opened
      opened.on('end', () => {
        client = null
        if (testTimer !== null) clearTimeout(testTimer)
        // The next comparison finds the changes of the time without a connection.
        retry(hasHeard ? lostRetryInterval : retryInterval)
      })
      opened.on('notification', ({ payload = '' }) => {
        if (payload.startsWith(parts.self)) hasHeard = true
        parts.receive(payload)
      })
      await opened.query(`LISTEN ${channel}`)
      await parts.test()
      if (client !== opened) return
      testTimer = setTimeout(() => {
        // A pooler gives each transaction another connection: then listening is of no use.
        if (!hasHeard) void opened.end()
      }, testTimeout)
      testTimer.unref()
    } catch {
      retry(retryInterval)
      await client?.end().catch(() => undefined)
    }
  }

  return {
    hears: () => hasHeard,
    async close() {
      isClosed = true
      for (const timer of [retryTimer, testTimer]) if (timer !== null) clearTimeout(timer)
      // This also ends a statement without a result, for which the start waits.
      await client?.end().catch(() => undefined)
      await starting
    },
  }
}
