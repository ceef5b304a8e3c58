import type { PeerCounts } from '../../core/peer-counts.ts'
import type { SharedLocks } from '../../media/uploads/shared-upload-locks.ts'
import { createPeerCounts } from './exchange-counts.ts'
import { createReplies, type FromWorker, type ToWorker } from './messages.ts'

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
