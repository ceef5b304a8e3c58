import type { Logger } from 'pino'
import type { UploadId } from '../core/ids.ts'
import type { SharedLocks } from '../uploads/upload-locks.ts'
import type { Config } from './config.ts'
import type { HandleMcp } from './mcp-routes.ts'
import { type RequestLog, type SharedParts, startService } from './start.ts'
import { type FromWorker, type Ports, Replies, type ToWorker, WorkerCounts } from './worker-messages.ts'

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
    readonly ownSecret: string
    readonly ports: Ports
    readonly handleMcp: HandleMcp | null
  },
) => {
  const { requestLog, onFailure, parent, owner, ownSecret, ports, handleMcp } = parts
  return startService(workerSettings(config, ports), log, {
    requestLog,
    onFailure,
    handleMcp,
    shared: {
      ...{ owner, ownSecret, counts: parent.counts, locks: parent.locks },
      readMetrics: () => parent.readMetrics(),
    },
  })
}

/** An upload of this worker that has a lock or waits for it. */
interface Claimant {
  granted(): void
  abort(): void
  isStalled(): boolean
}

/** What the parent does for a worker. */
export class ParentChannel implements Omit<SharedParts, 'owner' | 'ownSecret'> {
  readonly counts: WorkerCounts
  readonly locks: ParentLocks
  readonly #send: (message: FromWorker) => void
  readonly #metricsReplies = new Replies<string>()

  constructor(send: (message: FromWorker) => void) {
    this.#send = send
    this.locks = new ParentLocks(send)
    this.counts = new WorkerCounts((changes) => send({ kind: 'counts', changes }))
  }

  async readMetrics(): Promise<string> {
    const { request, reply } = this.#metricsReplies.expect()
    this.#send({ kind: 'read-metrics', request })
    return reply
  }

  /** Handles a message of the parent about locks, counts or metrics. Returns false for any other message. */
  receive(message: ToWorker): boolean {
    switch (message.kind) {
      case 'counts':
        this.counts.receive(message.changes)
        return true
      case 'metrics-text':
        this.#metricsReplies.resolve(message.request, message.text)
        return true
      default:
        return this.locks.receive(message)
    }
  }
}

/** The locks of uploads, which the parent grants. */
class ParentLocks implements SharedLocks {
  readonly #send: (message: FromWorker) => void
  readonly #claimants = new Map<number, Claimant>()
  #lastClaim = 0
  readonly #writerReplies = new Replies<void>()

  constructor(send: (message: FromWorker) => void) {
    this.#send = send
  }

  async acquire(id: UploadId, { abort, isStalled }: Omit<Claimant, 'granted'>): Promise<{ release(): void }> {
    this.#lastClaim += 1
    const claim = this.#lastClaim
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#claimants.set(claim, { granted: resolve, abort, isStalled })
    this.#send({ kind: 'claim-lock', claim, id })
    await promise
    return {
      release: () => {
        this.#claimants.delete(claim)
        this.#send({ kind: 'release-lock', claim })
      },
    }
  }

  async waitForWriter(id: UploadId): Promise<void> {
    const { request, reply } = this.#writerReplies.expect()
    this.#send({ kind: 'wait-for-writer', request, id })
    await reply
  }

  receive(message: ToWorker): boolean {
    switch (message.kind) {
      case 'lock-granted':
        this.#claimants.get(message.claim)?.granted()
        return true
      case 'abort-lock':
        this.#claimants.get(message.claim)?.abort()
        return true
      case 'abort-stalled-lock': {
        const claimant = this.#claimants.get(message.claim)
        const aborted = claimant?.isStalled() === true
        if (aborted) claimant.abort()
        this.#send({ kind: 'stalled-lock-aborted', request: message.request, aborted })
        return true
      }
      case 'writer-waited':
        this.#writerReplies.resolve(message.request, undefined)
        return true
      default:
        return false
    }
  }
}

/** The settings of one worker: the workers share the limits of memory and of picture processes in equal parts. */
function workerSettings(config: Config, ports: Ports): Config {
  const share = (limit: number) => Math.ceil(limit / config.workers)
  return Object.freeze({
    ...config,
    ...ports,
    cache: share(config.cache),
    variantProcesses: share(config.variantProcesses),
  })
}
