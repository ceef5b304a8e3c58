import cluster from 'node:cluster'
import { fileURLToPath } from 'node:url'
import type { Logger } from 'pino'
import type { Config } from '../../config/config.ts'
import { createClosers } from '../../core/closers.ts'
import { noPeers } from '../../core/peer-counts.ts'
import { createMetrics } from '../../http/metrics/metrics.ts'
import { deleteBlobs } from '../../media/deletion/delete-blobs.ts'
import { shareUploadLocks } from '../../media/uploads/shared-upload-locks.ts'
import { createUploadLockTable, type UploadLockTable } from '../../media/uploads/upload-lock-table.ts'
import { issueFirstToken } from '../issue-first-token.ts'
import { lockDirectory, type OpenData, openData, recoverData } from '../open-data.ts'
import type { StartContext } from '../start-context.ts'
import { startRemovals } from '../start-removals.ts'
import type { Server } from '../start-server.ts'
import { openSpace, startSpaceWatch } from '../start-space-watch.ts'
import { startAuditSweep, startExpirySweep, startIntentSweep, startTemporarySweep } from '../sweeps.ts'
import { createCountExchange } from './exchange-counts.ts'
import { createServiceMetrics } from './service-metrics.ts'
import { createWorkerPool } from './worker-pool.ts'
import { forkWorker, type WorkerProcess } from './worker-process.ts'

/**
 * Starts the service as several processes: workers that handle requests, and this one, their parent. The parent holds the
 * lock of the data directory, recovers before a worker starts, removes expired data, owns the locks of uploads, and adds
 * the metrics up. Rejects as startServer does.
 */
export async function startWorkers(
  config: Config,
  log: Logger,
  parts: {
    /** The module that a worker runs. */
    readonly program: URL
    /** Called when the service cannot continue; it must stop then. */
    readonly onFailure: (error: Error) => void
  },
): Promise<Server> {
  const closers = createClosers((what, err) => log.error({ err }, `${what} did not close`))
  const metrics = createMetrics()
  const context = { config, log, closers, metrics, peers: noPeers }
  try {
    lockDirectory(context)
    const data = await openData(context, parts.onFailure)
    await recoverData(context, data)
    startRemovals(context, data)
    startIntentSweep(context, data)
    startAuditSweep(context, data)
    await startTemporarySweep(context)
    startSpaceWatch(context, openSpace(context))
    const locks = createUploadLockTable()
    await startExpirySweep(context, {
      ...data,
      locks: { hold: shareUploadLocks(directLocks(locks)).hold, isHeld: locks.isHeld },
    })

    const service = createServiceMetrics(metrics.registry)
    const counts = createCountExchange<WorkerProcess>((worker, changes) => worker.sendCounts(changes))
    // The workers share the listening socket, and each accepts connections itself.
    cluster.schedulingPolicy = cluster.SCHED_NONE
    cluster.setupPrimary({ exec: fileURLToPath(parts.program), args: [], serialization: 'advanced' })
    const pool = createWorkerPool({
      ...config,
      log,
      fork(port) {
        const worker = forkWorker({ port, locks, readMetrics: service.text, onCounts: counts.receive })
        service.addWorker(worker)
        counts.join(worker)
        return worker
      },
      async onEnd(worker) {
        service.removeWorker(worker)
        counts.leave(worker)
        metrics.workerRestarts.inc()
        await cleanUpAfter(worker, context, data)
      },
      onFailure: parts.onFailure,
    })
    closers.add('the workers', () => pool.stop())
    const { baseUrl, port, hasGallery } = await pool.start()
    const firstToken = await issueFirstToken(data.catalog)
    return { baseUrl, port, hasGallery, firstToken, stop: () => closers.closeAll() }
  } catch (error) {
    await closers.closeAll().catch(() => undefined)
    throw error
  }
}

/** Removes the temporary files of a worker, and completes its deletions. Other workers may do the latter at the same time. */
async function cleanUpAfter(
  { owner }: WorkerProcess,
  { log }: Pick<StartContext, 'log'>,
  { catalog, blobs, blobDeletion }: OpenData,
): Promise<void> {
  try {
    await blobs.recovery?.removeTemporary(owner)
    await deleteBlobs(blobDeletion, await catalog.tombstones())
  } catch (err) {
    log.warn({ err }, 'what a worker left stays until the next start')
  }
}

/** The locks, for requests of the parent. */
const directLocks = (table: UploadLockTable): Parameters<typeof shareUploadLocks>[0] => ({
  acquire(id, { abort, isStalled }) {
    const granted = Promise.withResolvers<void>()
    const claim = table.claim(id, {
      granted: granted.resolve,
      abort,
      async abortIfStalled() {
        if (!isStalled()) return false
        abort()
        return true
      },
    })
    return granted.promise.then(() => claim)
  },
  waitForWriter: table.waitForWriter,
})
