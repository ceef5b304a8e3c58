import type { Registry } from 'prom-client'
import type { UploadId } from '../../core/upload-id.ts'
import type { CountChanges } from './exchange-counts.ts'

/** The metrics of one process. */
export type MetricsSnapshot = Awaited<ReturnType<Registry['getMetricsAsJSON']>>

/** What the parent sends to a worker. `claim` and `request` are numbers that the process which began has chosen. */
export type ToWorker =
  /** `owner` is the name of the worker; `port` may be 0. */
  | { readonly kind: 'start'; readonly owner: string; readonly port: number }
  | { readonly kind: 'stop' }
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
  | ({ readonly kind: 'ready' } & ListeningWorker)
  /** The start failed. */
  | { readonly kind: 'failed'; readonly message: string }
  | { readonly kind: 'claim-lock'; readonly claim: number; readonly id: UploadId }
  | { readonly kind: 'release-lock'; readonly claim: number }
  | { readonly kind: 'stalled-lock-aborted'; readonly request: number; readonly aborted: boolean }
  | { readonly kind: 'wait-for-writer'; readonly request: number; readonly id: UploadId }
  | { readonly kind: 'metrics-snapshot'; readonly request: number; readonly metrics: MetricsSnapshot }
  | { readonly kind: 'read-metrics'; readonly request: number }
  | { readonly kind: 'counts'; readonly changes: CountChanges }

export interface ListeningWorker {
  readonly baseUrl: string
  readonly port: number
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
