import type { Logger } from 'pino'
import type { PeerCounts } from '../core/processes.ts'
import { createClosers } from '../core/tasks.ts'
import { createMetrics } from '../http/metrics.ts'
import { lockWorker } from '../storage/engines.ts'
import { type SharedLocks, shareUploadLocks } from '../uploads/upload-locks.ts'
import type { Config } from './config.ts'
import { openData, openSpace } from './data.ts'
import { serveData, stopServer } from './start.ts'
import {
  createPeerCounts,
  createReplies,
  type FromWorker,
  type ListeningWorker,
  type MetricsSnapshot,
  type ToWorker,
} from './worker-messages.ts'

export interface Worker extends ListeningWorker {
  snapshotMetrics(): Promise<MetricsSnapshot>
  stop(): Promise<void>
}

/**
 * Starts the part of the service that handles requests, in a worker process. The parent holds the lock of the data directory,
 * has recovered, and removes expired data.
 */
export async function startWorker(
  config: Config,
  parts: {
    readonly log: Logger
    /** Writes one line per request to the log. */
    readonly writeLine: (line: string) => void
    /** Called when a thread has ended unexpectedly; the process must stop then. */
    readonly onFailure: (error: Error) => void
    readonly parent: ParentChannel
    readonly owner: string
    readonly port: number
  },
): Promise<Worker> {
  const { log, writeLine, onFailure, parent, owner, port } = parts
  const closers = createClosers((what, err) => log.error({ err }, `${what} did not close`))
  const metrics = { ...createMetrics(), text: () => parent.readMetrics() }
  const context = { config: workerSettings(config, port), log, closers, metrics, peers: parent.counts }
  try {
    const lock = lockWorker(config)
    closers.add('the lock of the worker', () => lock.release())
    const data = await openData(context, onFailure, owner)
    const locks = shareUploadLocks(parent.locks)
    const space = openSpace(context)
    const { app, ...listening } = await serveData(context, data, { locks, space, writeLine })
    return {
      ...listening,
      snapshotMetrics: () => metrics.registry.getMetricsAsJSON(),
      stop: () => stopServer(context, app),
    }
  } catch (error) {
    await closers.closeAll().catch(() => undefined)
    throw error
  }
}

/** What the parent does for a worker. */
export interface ParentChannel {
  readonly locks: SharedLocks
  readonly counts: PeerCounts
  /** The metrics of all workers, as text. */
  readMetrics(): Promise<string>
  /** Handles a message of the parent about locks, counts or metrics. Returns false for any other message. */
  receive(message: ToWorker): boolean
}

/** An upload of this worker that has a lock or waits for it. */
interface Claimant {
  granted(): void
  abort(): void
  isStalled(): boolean
}

export function openParentChannel(send: (message: FromWorker) => void): ParentChannel {
  const claimants = new Map<number, Claimant>()
  let lastClaim = 0
  const writerReplies = createReplies<void>()
  const metricsReplies = createReplies<string>()
  const counts = createPeerCounts((changes) => send({ kind: 'counts', changes }))

  return {
    counts,
    locks: {
      async acquire(id, { abort, isStalled }) {
        lastClaim += 1
        const claim = lastClaim
        const { promise, resolve } = Promise.withResolvers<void>()
        claimants.set(claim, { granted: resolve, abort, isStalled })
        send({ kind: 'claim-lock', claim, id })
        await promise
        return {
          release() {
            claimants.delete(claim)
            send({ kind: 'release-lock', claim })
          },
        }
      },
      async waitForWriter(id) {
        const { request, reply } = writerReplies.expect()
        send({ kind: 'wait-for-writer', request, id })
        await reply
      },
    },

    async readMetrics() {
      const { request, reply } = metricsReplies.expect()
      send({ kind: 'read-metrics', request })
      return reply
    },

    receive(message) {
      switch (message.kind) {
        case 'lock-granted':
          claimants.get(message.claim)?.granted()
          return true
        case 'abort-lock':
          claimants.get(message.claim)?.abort()
          return true
        case 'abort-stalled-lock': {
          const claimant = claimants.get(message.claim)
          const aborted = claimant?.isStalled() === true
          if (aborted) claimant.abort()
          send({ kind: 'stalled-lock-aborted', request: message.request, aborted })
          return true
        }
        case 'counts':
          counts.receive(message.changes)
          return true
        case 'writer-waited':
          writerReplies.resolve(message.request, undefined)
          return true
        case 'metrics-text':
          metricsReplies.resolve(message.request, message.text)
          return true
        default:
          return false
      }
    },
  }
}

/** The settings of one worker: the workers share the limits of memory and of picture processes in equal parts. */
function workerSettings(config: Config, port: number): Config {
  const share = (limit: number) => Math.ceil(limit / config.workers)
  return Object.freeze({
    ...config,
    port,
    cache: share(config.cache),
    variantProcesses: share(config.variantProcesses),
  })
}
