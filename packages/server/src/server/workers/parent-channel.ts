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
  /** Handles a message of the parent; false if it is none of these. */
  receive(message: ToWorker): boolean
}

interface Holder {
  granted(): void
  abort(): void
  isStalled(): boolean
}

export function openParentChannel(send: (message: FromWorker) => void): ParentChannel {
  const holders = new Map<number, Holder>()
  let lastClaim = 0
  const waits = createReplies<void>()
  const texts = createReplies<string>()
  const counts = createPeerCounts((changes) => send({ kind: 'counts', changes }))

  return {
    counts,
    locks: {
      async acquire(id, { abort, isStalled }) {
        lastClaim += 1
        const claim = lastClaim
        const { promise, resolve } = Promise.withResolvers<void>()
        holders.set(claim, { granted: resolve, abort, isStalled })
        send({ kind: 'claim-lock', claim, id })
        await promise
        return {
          release() {
            holders.delete(claim)
            send({ kind: 'release-lock', claim })
          },
        }
      },
      async waitForWriter(id) {
        const { request, reply } = waits.expect()
        send({ kind: 'wait-for-writer', request, id })
        await reply
      },
    },

    async readMetrics() {
      const { request, reply } = texts.expect()
      send({ kind: 'read-metrics', request })
      return reply
    },

    receive(message) {
      switch (message.kind) {
        case 'lock-granted':
          holders.get(message.claim)?.granted()
          return true
        case 'abort-lock':
          holders.get(message.claim)?.abort()
          return true
        case 'abort-stalled-lock': {
          const holder = holders.get(message.claim)
          const aborted = holder?.isStalled() === true
          if (aborted) holder.abort()
          send({ kind: 'stalled-lock-aborted', request: message.request, aborted })
          return true
        }
        case 'counts':
          counts.receive(message.changes)
          return true
        case 'writer-waited':
          waits.resolve(message.request, undefined)
          return true
        case 'metrics-text':
          texts.resolve(message.request, message.text)
          return true
        default:
          return false
      }
    },
  }
}
