import type { Logger } from 'pino'
import type { Config } from '../../config/config.ts'
import { createClosers } from '../../core/closers.ts'
import { lockWorker } from '../../engines.ts'
import { createMetrics } from '../../http/metrics/metrics.ts'
import { shareUploadLocks } from '../../media/uploads/shared-upload-locks.ts'
import { openData } from '../open-data.ts'
import { serveData } from '../serve-data.ts'
import { openSpace } from '../start-space-watch.ts'
import { stopServer } from '../stop-server.ts'
import type { ListeningWorker, MetricsSnapshot } from './messages.ts'
import type { ParentChannel } from './parent-channel.ts'
import { workerSettings } from './worker-settings.ts'

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
