import type { Logger } from 'pino'
import type { Config } from '../config/config.ts'
import { createClosers } from '../core/closers.ts'
import { createMetrics } from '../http/metrics/metrics.ts'
import { bindAddress } from './bind-address.ts'
import { createHttpApp } from './create-http-app.ts'
import { createOperations } from './create-operations.ts'
import { issueFirstToken } from './issue-first-token.ts'
import { loadGallery } from './load-gallery.ts'
import { openData } from './open-data.ts'
import { startDimensionWorkers } from './start-dimension-workers.ts'
import { startIntentSweep } from './start-intent-sweep.ts'
import { startRemovals } from './start-removals.ts'
import { startSpaceWatch } from './start-space-watch.ts'
import { startThumbnailWorkers } from './start-thumbnail-workers.ts'
import { startUploads } from './start-uploads.ts'
import { stopServer } from './stop-server.ts'

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
 * Starts the service. Rejects when another server uses the data directory or the address.
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
  const context = { config, log, closers, metrics: createMetrics() }
  try {
    const data = await openData(context, onFailure)
    const removeMedia = startRemovals(context, data)
    startIntentSweep(context, data)
    const measurePicture = startDimensionWorkers(context, data)
    const space = startSpaceWatch(context)
    const uploads = await startUploads(context, { ...data, measurePicture, removeMedia })
    const address = await bindAddress(context)
    const variants = startThumbnailWorkers(context, { ...data, space })
    const gallery = await loadGallery(context)
    const operations = createOperations(context, { ...data, ...uploads, ...variants, ...address, space })
    const app = await createHttpApp(context, { ...data, ...address, operations, gallery, writeLine })
    await address.serve(app.server)
    const firstToken = await issueFirstToken(data.catalog)

    const { baseUrl, port } = address
    const hasGallery = gallery !== null
    return { baseUrl, port, hasGallery, firstToken, stop: () => stopServer(context, app) }
  } catch (error) {
    await closers.closeAll().catch(() => undefined)
    throw error
  }
}
