import type { Registry } from 'prom-client'
import type { UploadId } from '../core/ids.ts'
import type { CountTopic, PeerCounts } from '../core/peer-counts.ts'
import type { ReloadableSettings } from './reload.ts'

/** The metrics of one process. */
export type MetricsSnapshot = Awaited<ReturnType<Registry['getMetricsAsJSON']>>

/** What the parent sends to a worker. `claim` and `request` are numbers that the process which began has chosen. */
export type ToWorker =
  /**
   * `owner` is the name of the worker; `ownSecret` is that of requests of the service to itself; the ports may be 0; `settings` are those of the
   * start or of the last reload.
   */
  | {
      readonly kind: 'start'
      readonly owner: string
      readonly ownSecret: string
      readonly ports: Ports
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

/** The port of the HTTP API, and that of the S3 protocol; null where it is off. */
export interface Ports {
  readonly port: number
  readonly s3Port: number | null
}

/** The ports are those that the service listens on, also where the configured ones are 0. */
export interface ServiceAddress extends Ports {
  readonly baseUrl: string
  /** Whether `/` serves the gallery. */
  readonly hasGallery: boolean
}

/** The replies that one process expects from another one. */
export class Replies<Value> {
  readonly #waiting = new Map<number, (value: Value) => void>()
  #last = 0

  /** A number for the request, and its reply. */
  expect(): { readonly request: number; readonly reply: Promise<Value> } {
    this.#last += 1
    const { promise, resolve } = Promise.withResolvers<Value>()
    this.#waiting.set(this.#last, resolve)
    return { request: this.#last, reply: promise }
  }

  resolve(request: number, value: Value): void {
    this.#waiting.get(request)?.(value)
    this.#waiting.delete(request)
  }
}

/** Changes of counts: topic, key, change. */
export type CountChanges = readonly (readonly [CountTopic, string, number])[]

/** Milliseconds between two messages with the changes of a worker. */
const sendInterval = 30

/** The changes of one process, added up by topic and key. */
class Changes {
  readonly #topics = new Map<CountTopic, Map<string, number>>()

  add(topic: CountTopic, key: string, change: number): void {
    const keys = this.#topics.get(topic) ?? new Map<string, number>()
    this.#topics.set(topic, keys)
    const sum = (keys.get(key) ?? 0) + change
    if (sum === 0) keys.delete(key)
    else keys.set(key, sum)
  }

  all(): CountChanges {
    return [...this.#topics].flatMap(([topic, keys]) =>
      [...keys].map(([key, change]) => [topic, key, change] as const),
    )
  }

  clear(): void {
    this.#topics.clear()
  }
}

/** The side of a worker: sends its changes to the parent. */
export class WorkerCounts implements PeerCounts {
  readonly #send: (changes: CountChanges) => void
  readonly #subscribers = new Map<CountTopic, (key: string, change: number) => void>()
  readonly #unsent = new Changes()
  #isScheduled = false

  constructor(send: (changes: CountChanges) => void) {
    this.#send = send
  }

  add(topic: CountTopic, key: string, change: number): void {
    this.#unsent.add(topic, key, change)
    if (this.#isScheduled) return
    this.#isScheduled = true
    setTimeout(() => this.#flush(), sendInterval).unref()
  }

  subscribe(topic: CountTopic, receive: (key: string, change: number) => void): void {
    this.#subscribers.set(topic, receive)
  }

  receive(changes: CountChanges): void {
    for (const [topic, key, change] of changes) this.#subscribers.get(topic)?.(key, change)
  }

  #flush(): void {
    this.#isScheduled = false
    const changes = this.#unsent.all()
    this.#unsent.clear()
    if (changes.length > 0) this.#send(changes)
  }
}

/** Counts that a worker's end sets back to 0. Requests were made, also after the end of the worker that counted them. */
const ofWorker: ReadonlySet<CountTopic> = new Set(['connections', 'claimed-bytes', 'url-uploads'])

/** The side of the parent: forwards the changes of each worker to all others. */
export class CountExchange<Worker> {
  readonly #send: (worker: Worker, changes: CountChanges) => void
  readonly #counts = new Map<Worker, Changes>()

  constructor(send: (worker: Worker, changes: CountChanges) => void) {
    this.#send = send
  }

  /** Sends the counts of the other workers to a new one. */
  join(worker: Worker): void {
    for (const other of this.#counts.values()) this.#send(worker, other.all())
    this.#counts.set(worker, new Changes())
  }

  receive(worker: Worker, changes: CountChanges): void {
    for (const [topic, key, change] of changes)
      if (ofWorker.has(topic)) this.#counts.get(worker)?.add(topic, key, change)
    this.#forward(worker, changes)
  }

  leave(worker: Worker): void {
    const left = this.#counts.get(worker)?.all() ?? []
    this.#counts.delete(worker)
    this.#forward(
      worker,
      left.map(([topic, key, change]) => [topic, key, -change]),
    )
  }

  #forward(from: Worker, changes: CountChanges): void {
    if (changes.length === 0) return
    for (const worker of this.#counts.keys()) if (worker !== from) this.#send(worker, changes)
  }
}
