import type { Logger } from 'pino'
import type { Config } from '../config/config.ts'
import { createClosers } from '../core/closers.ts'
import { noPeers } from '../core/peer-counts.ts'
import { createMetrics } from '../http/metrics/metrics.ts'
import { createUploadLocks } from '../media/uploads/upload-locks.ts'
import { issueFirstToken } from './issue-first-token.ts'
import { lockDirectory, openData, recoverData } from './open-data.ts'
import { serveData } from './serve-data.ts'
import { openSpace, startSpaceWatch } from './start-space-watch.ts'
import { stopServer } from './stop-server.ts'
import { startAuditSweep, startExpirySweep, startIntentSweep, startTemporarySweep } from './sweeps.ts'

export interface Server {
  readonly baseUrl: string
  /** The port that the server listens on, also where MEDIABUCKET_PORT is 0. */
  readonly port: number
  /** Whether `/` serves the gallery. */
  readonly hasGallery: boolean
  /** The token of the bucket `default`, on the first start with a new data directory; null on every later start. */
  readonly firstToken: string | null
  /** Stops accepting work, waits for requests in progress up to the shutdown timeout, and closes the data. */
  stop(): Promise<void>
}

/**
 * Starts the service as one process. Rejects when another server uses the data directory or the address.
 * Each step registers what it opens with `closers`, which a stop closes in reverse order.
 */
export async function startServer(
  config: Config,
  log: Logger,
  /** Writes one line per request to the log. */
  writeLine: (line: string) => void,
  /** Called when a thread has ended unexpectedly; the process must stop then. */
  onFailure: (error: Error) => void,
): Promise<Server> {
  const closers = createClosers((what, err) => log.error({ err }, `${what} did not close`))
  const context = { config, log, closers, metrics: createMetrics(), peers: noPeers }
  try {
    lockDirectory(context)
    const data = await openData(context, onFailure)
    await recoverData(context, data)
    startIntentSweep(context, data)
    startAuditSweep(context, data)
    await startTemporarySweep(context)
    const space = openSpace(context)
    startSpaceWatch(context, space)
    const locks = createUploadLocks()
    await startExpirySweep(context, { ...data, locks })
    const { app, ...served } = await serveData(context, data, { locks, space, writeLine })
    const firstToken = await issueFirstToken(data.catalog)
    return { ...served, firstToken, stop: () => stopServer(context, app) }
  } catch (error) {
    await closers.closeAll().catch(() => undefined)
    throw error
  }
}
