import cluster from 'node:cluster'
import { randomUUID } from 'node:crypto'
import type { UploadLockTable } from '../../media/uploads/upload-lock-table.ts'
import type { CountChanges } from './exchange-counts.ts'
import {
  createReplies,
  type FromWorker,
  type ListeningWorker,
  type MetricsSnapshot,
  type ToWorker,
} from './messages.ts'
import type { MetricsSource } from './service-metrics.ts'
import { WorkerStartError } from './worker-start-error.ts'

/** A worker, as the parent sees it. */
export interface WorkerProcess extends MetricsSource {
  /** The names of its temporary files begin with it. */
  readonly owner: string
  readonly pid: number | undefined
  /** Rejects with WorkerStartError if the worker reports an error or ends before it listens. */
  readonly listening: Promise<ListeningWorker>
  /** Resolves with the exit code or the signal when the process has ended. */
  readonly ended: Promise<string>
  /** Sends it counts of other workers. */
  sendCounts(changes: CountChanges): void
  /** Finishes the requests in progress and ends. */
  stop(): void
  kill(): void
}

/** Starts a worker. `cluster` has been set up. */
export function forkWorker(parts: {
  readonly port: number
  readonly locks: UploadLockTable
  /** The metrics of all workers, as text. */
  readonly readMetrics: () => Promise<string>
  readonly onCounts: (worker: WorkerProcess, changes: CountChanges) => void
}): WorkerProcess {
  const owner = randomUUID()
  const listening = Promise.withResolvers<ListeningWorker>()
  const ended = Promise.withResolvers<string>()
  const claims = new Map<number, { release(): void }>()
  const aborts = createReplies<boolean>()
  const snapshots = createReplies<MetricsSnapshot>()
  const worker = cluster.fork()
  // A worker that has ended receives nothing; `ended` reports it.
  const send = (message: ToWorker) => {
    if (worker.isConnected()) worker.send(message, undefined, () => undefined)
  }
  let hasEnded = false

  function receive(message: FromWorker): void {
    switch (message.kind) {
      case 'ready':
        listening.resolve(message)
        return
      case 'failed':
        listening.reject(new WorkerStartError(message.message))
        return
      case 'claim-lock': {
        const { claim } = message
        const claimant = {
          granted: () => send({ kind: 'lock-granted', claim }),
          abort: () => send({ kind: 'abort-lock', claim }),
          abortIfStalled() {
            const { request, reply } = aborts.expect()
            send({ kind: 'abort-stalled-lock', claim, request })
            // If the worker has ended, its locks are released.
            return Promise.race([reply, ended.promise.then(() => true)])
          },
        }
        claims.set(claim, parts.locks.claim(message.id, claimant))
        return
      }
      case 'release-lock':
        claims.get(message.claim)?.release()
        claims.delete(message.claim)
        return
      case 'stalled-lock-aborted':
        aborts.resolve(message.request, message.aborted)
        return
      case 'wait-for-writer': {
        const { request } = message
        void parts.locks.waitForWriter(message.id).then(() => send({ kind: 'writer-waited', request }))
        return
      }
      case 'counts':
        parts.onCounts(self, message.changes)
        return
      case 'metrics-snapshot':
        snapshots.resolve(message.request, message.metrics)
        return
      case 'read-metrics': {
        const { request } = message
        void parts.readMetrics().then((text) => send({ kind: 'metrics-text', request, text }))
        return
      }
    }
  }

  function end(how: string): void {
    if (hasEnded) return
    hasEnded = true
    for (const { release } of claims.values()) release()
    claims.clear()
    listening.reject(new WorkerStartError(`a worker ended before it listened (${how})`))
    ended.resolve(how)
  }

  worker.on('message', receive)
  worker.on('exit', (code, signal) => end(signal ? String(signal) : `exit code ${code}`))
  // The process could not be started.
  worker.on('error', (error) => {
    if (worker.process.pid === undefined) end(error.message)
  })
  // It is handled by the callers of `listening` only if they wait.
  listening.promise.catch(() => undefined)
  send({ kind: 'start', owner, port: parts.port })

  const self: WorkerProcess = {
    owner,
    pid: worker.process.pid,
    listening: listening.promise,
    ended: ended.promise,
    snapshotMetrics() {
      const { request, reply } = snapshots.expect()
      send({ kind: 'snapshot-metrics', request })
      return reply
    },
    sendCounts: (changes) => send({ kind: 'counts', changes }),
    stop: () => send({ kind: 'stop' }),
    kill: () => void worker.process.kill('SIGKILL'),
  }
  return self
}
