import { lookup } from 'node:dns/promises'
import type { Server as HttpServer } from 'node:http'
import { fileURLToPath } from 'node:url'
import type { Logger } from 'pino'
import { issueTokenOfNewBucket } from '../access/tokens.ts'
import { storeOriginOf } from '../core/storage-urls.ts'
import { createClosers } from '../core/tasks.ts'
import { defaultScopes } from '../core/tokens.ts'
import { createDownloadLog, type DownloadLog } from '../downloads/download-log.ts'
import { limitConnections } from '../http/connection-limits.ts'
import { trackUnusedConnections } from '../http/connections.ts'
import type { HttpParts } from '../http/context.ts'
import { createClientAddresses, createRequestLimits } from '../http/limits.ts'
import { createMetrics } from '../http/metrics.ts'
import { type BoundPort, bindPort } from '../http/server.ts'
import { findTools, toolNames } from '../pictures/tools.ts'
import type { Catalog } from '../storage/catalog/catalog.ts'
import { type FreeSpace, hasRoomForEvents } from '../uploads/space.ts'
import { createUploadLocks, type UploadLocks } from '../uploads/upload-locks.ts'
import { type BoundConfig, type Config, defaultBaseUrl } from './config.ts'
import {
  lockDirectory,
  type OpenData,
  openData,
  openSpace,
  recoverData,
  type StartContext,
  startRemovals,
  startSpaceWatch,
} from './data.ts'
import { type Gallery, type GallerySignIn, readGallery } from './gallery-routes.ts'
import { createOperations, startIssuer, startUploads } from './operations.ts'
import { startDimensionWorkers, startMetadataWorkers, startThumbnailWorkers } from './picture-workers.ts'
import { createApp, type Operations } from './routes.ts'
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
  const context = { config, log, closers, metrics: createMetrics(), peers: null }
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

export interface ServedData {
  readonly baseUrl: string
  readonly port: number
  readonly hasGallery: boolean
  readonly app: HttpApp
}

/** Starts everything that handles requests, and listens. */
export async function serveData(
  context: StartContext,
  data: OpenData,
  parts: {
    readonly locks: UploadLocks
    readonly space: FreeSpace
    /** Writes one line per request to the log. */
    readonly writeLine: (line: string) => void
  },
): Promise<ServedData> {
  const { locks, space, writeLine } = parts
  const remover = startRemovals(context, data)
  const measurePicture = startDimensionWorkers(context, data)
  const tools = findTools(context.config.searchPath)
  const removeMetadata = startMetadataWorkers(context, { ...data, tools })
  const variants = startThumbnailWorkers(context, { ...data, space, tools })
  const uploads = startUploads(context, {
    ...data,
    measurePicture,
    removeMetadata,
    removeItem: remover.remove,
    locks,
    onStored: variants.renderAhead,
  })
  const { baseUrl, port, settings: bound, serve, closePort } = await bindAddress(context)
  const settings = { ...bound, tools: toolNames(tools) }
  const gallery = await loadGallery(context)
  const issuer = await startIssuer(context, { ...data, ...remover })
  const operations = createOperations(context, {
    ...data,
    ...uploads,
    ...variants,
    settings,
    remover,
    space,
    issuer,
  })
  const app = createHttpApp(context, operations, {
    settings,
    catalog: data.catalog,
    downloadLog: startDownloadLog(context, { ...data, space }),
    gallery,
    signIn: issuer?.signIn ?? null,
    writeLine,
    closePort,
  })
  await serve(app.server)
  return { baseUrl, port, hasGallery: gallery !== null, app }
}

export interface BoundAddress {
  readonly port: number
  readonly baseUrl: string
  readonly settings: BoundConfig
  /** Listens with a server on the bound port. */
  readonly serve: BoundPort['serve']
  readonly closePort: BoundPort['close']
}

/** Binds the port before the HTTP server exists, because URLs in responses contain it where MEDIABUCKET_PORT is 0. */
export async function bindAddress({ config, closers }: StartContext): Promise<BoundAddress> {
  // Exactly one address, also for a host name that has an IPv4 and an IPv6 address.
  const { address } = await lookup(config.host, { order: 'ipv4first' })
  const bound = await bindPort(address, config.port)
  closers.add('the port', () => bound.close())
  const { port, serve, close } = bound
  const baseUrl = config.baseUrl ?? defaultBaseUrl(config.host, port)
  // The gallery fetches text files from the media host.
  const corsOrigins =
    config.mediaBaseUrl === null ? config.corsOrigins : [...config.corsOrigins, new URL(baseUrl).origin]
  const { blobsUrl, sendfile } = config
  const storeOrigin = blobsUrl && sendfile?.header === 'location' ? storeOriginOf(blobsUrl) : null
  const settings = {
    ...config,
    baseUrl,
    mediaBaseUrl: config.mediaBaseUrl ?? baseUrl,
    hasOwnAddress: config.baseUrl !== null,
    corsOrigins,
    storeOrigin,
  }
  return { port, baseUrl, settings, serve, closePort: close }
}

export interface HttpApp {
  readonly server: HttpServer
  /** From now on readiness is false, and responses close their connections. */
  announceStop(): void
  /** Closes the connections that have no request in progress. */
  closeUnused(): void
}

/** Creates the HTTP server, ready to listen. `closePort` stops it. */
export function createHttpApp(
  { config, log, metrics, closers, peers }: StartContext,
  operations: Operations,
  parts: Pick<HttpParts, 'settings' | 'catalog'> & {
    readonly downloadLog: DownloadLog | null
    readonly gallery: Gallery | null
    readonly signIn: GallerySignIn | null
    readonly writeLine: (line: string) => void
    readonly closePort: () => Promise<void>
  },
): HttpApp {
  const { settings, catalog, downloadLog, gallery, signIn, writeLine, closePort } = parts
  const addresses = createClientAddresses(config.trustedProxies)
  const limits = createRequestLimits(config, { addresses, metrics, log, peers })
  const stop = new AbortController()
  const server = createApp(
    operations,
    { settings, catalog, log, metrics, limits, addresses, stopping: stop.signal },
    { writeLine, downloadLog, gallery, signIn },
  )
  const connections = trackUnusedConnections(server)
  limitConnections(server, config, { addresses, metrics, log, baseUrl: settings.baseUrl, peers })
  closers.add('the HTTP server', closePort)
  return {
    server,
    announceStop: () => stop.abort(),
    closeUnused: connections.closeUnused,
  }
}

/** One line of the log for each problem and minute. Milliseconds. */
const logInterval = 60_000

/** Records downloads in the audit log; null unless MEDIABUCKET_AUDIT is `all`. Start it before the HTTP server, which stops before it. */
export function startDownloadLog(
  { config, log, metrics, closers }: StartContext,
  { catalog, space }: Pick<OpenData, 'catalog'> & { readonly space: Pick<FreeSpace, 'read'> },
): DownloadLog | null {
  if (config.audit !== 'all') return null
  const [mayLogLoss, mayLogFailure] = [oncePer(logInterval), oncePer(logInterval)]
  const downloads = createDownloadLog({
    catalog,
    now: Date.now,
    hasRoom: () => hasRoomForEvents(space.read()),
    onLoss(count) {
      metrics.lostDownloadEvents.inc(count)
      if (mayLogLoss())
        log.error(
          'downloads are not recorded in the audit log, because the disk is nearly full or too many events wait to be stored; their number will be recorded',
        )
    },
    onFailure(err) {
      if (mayLogFailure()) log.warn({ err }, 'downloads could not be recorded in the audit log yet')
    },
  })
  closers.add('the log of downloads', async () => {
    const count = await downloads.close()
    if (count > 0) log.error({ count }, 'downloads were not recorded in the audit log before the stop')
  })
  return downloads
}

/** Returns whether this is the first call for this time. Milliseconds. */
function oncePer(interval: number): () => boolean {
  let last = Number.NEGATIVE_INFINITY
  return () => {
    const now = performance.now()
    if (now - last < interval) return false
    last = now
    return true
  }
}

/** Reads the built gallery. Null where it is turned off or not built. */
export async function loadGallery({ config, log }: StartContext): Promise<Gallery | null> {
  if (!config.gallery) return null
  const gallery = await readGallery(galleryDirectory())
  if (gallery === null)
    log.warn(
      'the gallery is not built, so there is no page at /; `npm run build` in packages/gallery builds it',
    )
  return gallery
}

/** The directory of the built files in the gallery's package. */
const galleryDirectory = (): string =>
  fileURLToPath(new URL('dist/', import.meta.resolve('@mediabucket/gallery/package.json')))

/** Creates the bucket `default` and its first token in a new catalog. Null if the catalog is not new, or another server creates it. */
export async function issueFirstToken(catalog: Catalog): Promise<string | null> {
  if (!(await catalog.isNew())) return null
  const issued = await issueTokenOfNewBucket(catalog, {
    bucket: 'default',
    name: 'first',
    scopes: defaultScopes,
    expiresAt: null,
    now: Date.now(),
  })
  return issued?.token ?? null
}

/** Milliseconds between two passes that close unused connections. */
const closeInterval = 50

/** Lets requests in progress finish within the shutdown timeout, and closes what the start opened in reverse order. */
export async function stopServer({ config, closers }: StartContext, app: HttpApp): Promise<void> {
  app.announceStop()
  const deadline = setTimeout(() => app.server.closeAllConnections(), config.shutdownTimeout)
  // Repeated, because a connection becomes unused when its request has been answered.
  const closing = setInterval(app.closeUnused, closeInterval)
  try {
    await closers.closeAll()
  } finally {
    clearInterval(closing)
    clearTimeout(deadline)
  }
}
