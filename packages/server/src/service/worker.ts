import type { Logger } from 'pino'
import type { Config } from './config.ts'
import { type RequestLog, type SharedParts, startService } from './start.ts'
import { type FromWorker, Replies, type ToWorker, WorkerCounts } from './worker-messages.ts'

/**
 * Starts the part of the service that handles requests, in a worker process. The parent holds the lock of the data directory,
 * has recovered, and removes expired data.
 */
export const startWorker = (
  config: Config,
  log: Logger,
  parts: {
    readonly requestLog: RequestLog
    readonly onFailure: (error: Error) => void
    readonly parent: ParentChannel
    readonly owner: string
    readonly port: number
  },
) => {
  const { requestLog, onFailure, parent, owner, port } = parts
  return startService(workerSettings(config, port), log, {
    requestLog,
    onFailure,
    shared: { ...parent, owner },
  })
}

/** What the parent does for a worker. */
export interface ParentChannel extends Omit<SharedParts, 'owner'> {
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
  const writerReplies = new Replies<void>()
  const metricsReplies = new Replies<string>()
  const counts = new WorkerCounts((changes) => send({ kind: 'counts', changes }))

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
