import type { Registry } from 'prom-client'
import type { UploadId } from '../core/ids.ts'
import type { CountTopic, PeerCounts } from '../core/peer-counts.ts'
import type { ReloadableSettings } from './reload.ts'

/** The metrics of one process. */
export type MetricsSnapshot = Awaited<ReturnType<Registry['getMetricsAsJSON']>>

/** What the parent sends to a worker. `claim` and `request` are numbers that the process which began has chosen. */
export type ToWorker =
  /** `owner` is the name of the worker; `port` may be 0; `settings` are those of the start or of the last reload. */
  | {
      readonly kind: 'start'
      readonly owner: string
      readonly port: number
      readonly settings: ReloadableSettings
    }
  | { readonly kind: 'stop' }
  | { readonly kind: 'reload'; readonly settings: ReloadableSettings }
  /** Of other workers. */
  | { readonly kind: 'counts'; readonly changes: CountChanges }
  | { readonly kind: 'lock-granted'; readonly claim: number }
  | { readonly kind: 'abort-lock'; readonly claim: number }
  | { readonly kind: 'abort-stalled-lock'; readonly claim: number; readonly request: number }
  | { readonly kind: 'writer-waited'; readonly request: number }
  | { readonly kind: 'snapshot-metrics'; readonly request: number }
  | { readonly kind: 'metrics-text'; readonly request: number; readonly text: string }

/** What a worker sends to the parent. */
export type FromWorker =
  | { readonly kind: 'ready'; readonly address: ServiceAddress }
  /** The start failed. */
  | { readonly kind: 'failed'; readonly message: string }
  | { readonly kind: 'claim-lock'; readonly claim: number; readonly id: UploadId }
  | { readonly kind: 'release-lock'; readonly claim: number }
  | { readonly kind: 'stalled-lock-aborted'; readonly request: number; readonly aborted: boolean }
  | { readonly kind: 'wait-for-writer'; readonly request: number; readonly id: UploadId }
  | { readonly kind: 'metrics-snapshot'; readonly request: number; readonly metrics: MetricsSnapshot }
  | { readonly kind: 'read-metrics'; readonly request: number }
  | { readonly kind: 'counts'; readonly changes: CountChanges }

export interface ServiceAddress {
  readonly baseUrl: string
  /** The port that the service listens on, also where MEDIABUCKET_PORT is 0. */
  readonly port: number
  /** Whether `/` serves the gallery. */
  readonly hasGallery: boolean
}

/** The replies that one process expects from another one. */
export interface Replies<Value> {
  /** A number for the request, and its reply. */
  expect(): { readonly request: number; readonly reply: Promise<Value> }
  resolve(request: number, value: Value): void
}

export function createReplies<Value>(): Replies<Value> {
  const waiting = new Map<number, (value: Value) => void>()
  let last = 0
  return {
    expect() {
      last += 1
      const { promise, resolve } = Promise.withResolvers<Value>()
      waiting.set(last, resolve)
      return { request: last, reply: promise }
    },
    resolve(request, value) {
      waiting.get(request)?.(value)
      waiting.delete(request)
    },
  }
}

/** Changes of counts: topic, key, change. */
export type CountChanges = readonly (readonly [CountTopic, string, number])[]

/** Milliseconds between two messages with the changes of a worker. */
const sendInterval = 30

/** The changes of one process, added up by topic and key. */
function createChanges() {
  const topics = new Map<CountTopic, Map<string, number>>()
  return {
    add(topic: CountTopic, key: string, change: number): void {
      const keys = topics.get(topic) ?? new Map<string, number>()
      topics.set(topic, keys)
      const sum = (keys.get(key) ?? 0) + change
      if (sum === 0) keys.delete(key)
      else keys.set(key, sum)
    },
    all: (): CountChanges =>
      [...topics].flatMap(([topic, keys]) => [...keys].map(([key, change]) => [topic, key, change] as const)),
    clear: () => topics.clear(),
  }
}

/** The side of a worker: sends its changes to the parent. */
export function createPeerCounts(
  send: (changes: CountChanges) => void,
): PeerCounts & { receive(changes: CountChanges): void } {
  const subscribers = new Map<CountTopic, (key: string, change: number) => void>()
  const unsent = createChanges()
  let isScheduled = false

  function flush(): void {
    isScheduled = false
    const changes = unsent.all()
    unsent.clear()
    if (changes.length > 0) send(changes)
  }

  return {
    add(topic, key, change) {
      unsent.add(topic, key, change)
      if (isScheduled) return
      isScheduled = true
      setTimeout(flush, sendInterval).unref()
    },
    subscribe: (topic, receive) => void subscribers.set(topic, receive),
    receive(changes) {
      for (const [topic, key, change] of changes) subscribers.get(topic)?.(key, change)
    },
  }
}

/** Counts that a worker's end sets back to 0. Requests were made, also after the end of the worker that counted them. */
const ofWorker: ReadonlySet<CountTopic> = new Set(['connections', 'claimed-bytes'])

/** The side of the parent: forwards the changes of each worker to all others. */
export function createCountExchange<Worker>(send: (worker: Worker, changes: CountChanges) => void) {
  const counts = new Map<Worker, ReturnType<typeof createChanges>>()

  function forward(from: Worker, changes: CountChanges): void {
    if (changes.length > 0) for (const worker of counts.keys()) if (worker !== from) send(worker, changes)
  }

  return {
    /** Sends the counts of the other workers to a new one. */
    join(worker: Worker): void {
      for (const other of counts.values()) send(worker, other.all())
      counts.set(worker, createChanges())
    },
    receive(worker: Worker, changes: CountChanges): void {
      for (const [topic, key, change] of changes)
        if (ofWorker.has(topic)) counts.get(worker)?.add(topic, key, change)
      forward(worker, changes)
    },
    leave(worker: Worker): void {
      const left = counts.get(worker)?.all() ?? []
      counts.delete(worker)
      forward(
        worker,
        left.map(([topic, key, change]) => [topic, key, -change]),
      )
    },
  }
}
