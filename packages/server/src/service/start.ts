import { lookup } from 'node:dns/promises'
import type { Server as HttpServer } from 'node:http'
import { setTimeout as startTimer } from 'node:timers'
import { setTimeout } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { Logger } from 'pino'
import { issueTokenOfNewBucket } from '../access/token-operations.ts'
import type { PeerCounts } from '../core/peer-counts.ts'
import { oncePer } from '../core/tasks.ts'
import { scopes } from '../core/token-rules.ts'
import { openBytesOperation } from '../downloads/bytes-cache.ts'
import { DownloadLog } from '../downloads/download-log.ts'
import { trackUnusedConnections } from '../http/client-connections.ts'
import { limitConnections } from '../http/connection-limits.ts'
import { ClientAddresses, RequestLimits } from '../http/limits.ts'
import { Metrics } from '../http/metrics.ts'
import type { RequestLines } from '../http/request-log.ts'
import { type BoundPort, bindPort } from '../http/server.ts'
import { UsageLog } from '../http/usage-log.ts'
import { startPictures } from '../pictures/start-pictures.ts'
import { toolNames } from '../pictures/tools.ts'
import type { Catalog } from '../storage/catalog/catalog.ts'
import { lockWorker, spacePlaces } from '../storage/engines.ts'
import { hasLittleMemory } from '../storage/memory.ts'
import { createSpaceReader, FreeSpace, hasRoomForEvents } from '../uploads/space.ts'
import { OwnUploadLocks, type SharedLocks, SharedUploadLocks } from '../uploads/upload-locks.ts'
import { boundConfig, corsOriginsOf } from './bound-config.ts'
import { type Config, defaultBaseUrl } from './config.ts'
import {
  checkDataHistory,
  lockDirectory,
  type OpenData,
  openData,
  recoverData,
  type StartContext,
  startBucketRemovals,
  startInSteps,
  startRemovals,
} from './data.ts'
import { type Gallery, readGallery } from './gallery-routes.ts'
import type { HandleMcp } from './mcp-routes.ts'
import { createOperations, type Operations } from './operations.ts'
import { createOwnFetch, newOwnSecret } from './own-requests.ts'
import type { ReloadableSettings } from './reload.ts'
import { createApp } from './routes.ts'
import { startWebhooks } from './start-webhooks.ts'
import { startExpirySweeps, startSizesSweep, startSweeps, startTakenSweep, watchFreeSpace } from './sweeps.ts'
import type { ServiceAddress } from './worker-messages.ts'

/** A service that listens. */
export interface Service {
  readonly address: ServiceAddress
  /** The token of the bucket `default`, on the first start with a new data directory; null on every later start. */
  readonly firstToken: string | null
  /** Takes settings over. */
  reload(settings: ReloadableSettings): void
  /** Stops accepting work, waits for requests in progress up to the shutdown timeout, and closes the data. */
  stop(): Promise<void>
}

/** The log, for the lines of requests. */
export interface RequestLog extends RequestLines {
  /** How many lines of the log were dropped so far, of requests and others. */
  readonly dropped: () => number
}

/** A process that handles requests, with its parts. */
interface ServiceProcess extends Service {
  readonly data: OpenData
  readonly operations: Operations
  readonly http: HttpServer
  readonly metrics: Metrics
}

/** What a worker shares with the other processes of the service. */
export interface SharedParts {
  /** The name of the worker. */
  readonly owner: string
  /** As ToWorker's. */
  readonly ownSecret: string
  readonly locks: SharedLocks
  readonly counts: PeerCounts
  /** The metrics of all workers, as text. */
  readMetrics(): Promise<string>
}

/** Milliseconds between two passes that close unused connections. */
const closeInterval = 50

/** As HttpParts.bodyMemory. */
const bodyMemory = (hasLittleMemory ? 2 : 8) * 1024 * 1024

/** As HttpParts.responseMemory, for all processes of the service. */
const responseMemory = (hasLittleMemory ? 32 : 256) * 1024 * 1024

interface ProcessParts {
  readonly requestLog: RequestLog
  /** Called when a thread has ended unexpectedly; the process must stop then. */
  readonly onFailure: (error: Error) => void
  /** Null where this process is the whole service. */
  readonly shared: SharedParts | null
  /** Null where the Model Context Protocol is off. */
  readonly handleMcp: HandleMcp | null
}

/**
 * Starts a process that handles requests: the whole service, or one of its workers. The parent of workers holds the lock of the data
 * directory, has recovered, and sweeps. Rejects when another service uses the data directory or the address.
 */
export async function startService(
  config: Config,
  log: Logger,
  parts: ProcessParts,
): Promise<ServiceProcess> {
  const { requestLog, shared } = parts
  const metrics = new Metrics(shared && (() => shared.readMetrics()))
  metrics.watchLog(requestLog.dropped)
  const peers = shared === null ? null : shared.counts
  return startInSteps({ config, log, metrics, peers }, (context) => startProcess(context, parts))
}

async function startProcess(context: StartContext, parts: ProcessParts): Promise<ServiceProcess> {
  const { config, closers, metrics } = context
  const isWhole = parts.shared === null
  const stored = await openStored(context, parts)
  const { data, ownLocks, remover, deleter, openBytes } = stored

  // The port is bound before, because URLs in responses contain it where MEDIABUCKET_PORT is 0.
  const bound = await openPort(context, config.port, 'MEDIABUCKET_PORT')
  const boundS3 =
    config.s3Port === null ? null : await openPort(context, config.s3Port, 'MEDIABUCKET_S3_PORT')
  const provided = await provideOperations(context, stored, bound)
  const { settings, operations } = provided
  if (isWhole) metrics.watchReadiness(operations.monitoring.readiness)

  const created = createServers(context, parts, { stored, provided, bound, boundS3 })
  const { http, s3, gallery } = created
  closers.add('the HTTP server', bound.close)
  await bound.serve(http)
  if (s3 !== null && boundS3 !== null) {
    closers.add('the S3 server', boundS3.close)
    await boundS3.serve(s3)
  }
  if (isWhole) {
    startExpirySweeps(context, data, { locks: ownLocks, remover, deleter })
    startWebhooks(context, data, settings)
    startTakenSweep(context, data, openBytes)
    startSizesSweep(context, data)
  }
  const address = {
    baseUrl: settings.baseUrl,
    port: bound.port,
    s3Port: boundS3?.port ?? null,
    hasGallery: gallery !== null,
  }
  const firstToken = isWhole ? await issueFirstToken(data.catalog) : null
  return new RunningProcess(context, created, { settings, data, operations, address, firstToken })
}

/** Opens the data, and what operations use of it. */
async function openStored(context: StartContext, { onFailure, shared }: ProcessParts) {
  const { config, closers } = context
  if (shared === null) lockDirectory(context)
  else {
    const lock = lockWorker(config)
    closers.add('the lock of the worker', () => lock.release())
  }
  const data = await openData(context, onFailure, shared?.owner)
  const { catalog, blobs } = data
  const space = openSpace(context)

  // What one process of the service does alone, before it handles requests and while it does.
  const ownLocks = new OwnUploadLocks()
  const locks = shared === null ? ownLocks : new SharedUploadLocks(shared.locks)
  if (shared === null) {
    await recoverData(context, data)
    await checkDataHistory(context, data)
    await startSweeps(context, data)
    watchFreeSpace(context, space)
  }

  const remover = startRemovals(context, data)
  const deleter = startBucketRemovals(context, data)
  const openBytes = openBytesOperation({ catalog, blobs })
  const hasRoom = () => space.hasRoom()
  const pictures = startPictures(config, { ...context, catalog, blobs, openBytes, hasRoom })
  closers.add('the processes of pictures', pictures.close)
  closers.add('resumable uploads', () => locks.allReleased())
  return { data, space, ownLocks, locks, remover, deleter, openBytes, pictures }
}

type Stored = Awaited<ReturnType<typeof openStored>>

/** The operations, and the settings that are known when the port is. */
async function provideOperations(context: StartContext, stored: Stored, { port }: Pick<BoundPort, 'port'>) {
  const { config, log, metrics } = context
  const { data, space, locks, remover, deleter, openBytes, pictures } = stored
  const { catalog, blobs } = data
  const settings = { ...boundConfig(config, port), tools: toolNames(pictures.tools) }
  metrics.watchReadOnly(() => settings.readOnly)
  const issuer =
    config.issuer &&
    (await openIssuer(config.issuer, { removeExpired: (id) => remover.removeExpired(id), catalog, log }))
  const operations = createOperations(context, {
    ...{ catalog, blobs, space, locks, openBytes, pictures, remover, deleter, settings, issuer },
  })
  return { settings, issuer, operations }
}

type Provided = Awaited<ReturnType<typeof provideOperations>>

/** Creates the servers, which do not listen yet. */
function createServers(
  context: StartContext,
  { requestLog, shared, handleMcp }: ProcessParts,
  opened: {
    readonly stored: Stored
    readonly provided: Provided
    readonly bound: BoundPort
    readonly boundS3: BoundPort | null
  },
) {
  const { config, log, metrics, peers } = context
  const { space, data } = opened.stored
  const { settings, operations, issuer } = opened.provided
  const { port } = opened.bound
  const { catalog } = data
  const gallery = loadGallery(context)
  const downloadLog = startDownloadLog(context, { catalog, space })
  const usage = startUsageLog(context, { catalog, space })
  const ownSecret = handleMcp && (shared?.ownSecret ?? newOwnSecret())
  const addresses = new ClientAddresses(config.trustedProxies, ownSecret)
  const limits = new RequestLimits(config, { addresses, metrics, log, peers })
  const [stopping, closing] = [new AbortController(), new AbortController()]
  const ownFetch =
    ownSecret === null
      ? null
      : createOwnFetch({
          ...{ secret: ownSecret, port, baseUrls: [settings.baseUrl, settings.mediaBaseUrl] },
          host: new URL(defaultBaseUrl(config.host, port)).hostname.replace(/^\[|\]$/g, ''),
        })
  const { http, s3 } = createApp(
    operations,
    {
      ...{ settings, catalog, log, metrics, limits, usage, addresses, bodyMemory },
      ...{ stopping: stopping.signal, closing: closing.signal },
      responseMemory: Math.ceil(responseMemory / config.workers),
    },
    {
      ...{ requestLines: requestLog, downloadLog, gallery, signIn: issuer?.signIn ?? null },
      mcp: handleMcp && ownFetch && { handle: handleMcp, canWrite: config.mcp === 'write', ownFetch },
      s3: opened.boundS3 && { host: config.s3Host, port: opened.boundS3.port },
    },
  )
  const servers = s3 === null ? [http] : [http, s3]
  const connections = servers.map(trackUnusedConnections)
  limitConnections(servers, config, { addresses, metrics, log, peers })
  return { http, s3, servers, connections, gallery, limits, stopping, closing }
}

type Created = ReturnType<typeof createServers>

class RunningProcess implements ServiceProcess {
  readonly address: ServiceAddress
  readonly firstToken: string | null
  readonly data: OpenData
  readonly operations: Operations
  readonly http: HttpServer
  readonly metrics: Metrics
  readonly #context: StartContext
  readonly #created: Created
  readonly #settings: Provided['settings']

  constructor(
    context: StartContext,
    created: Created,
    parts: Pick<Provided, 'settings' | 'operations'> &
      Pick<ServiceProcess, 'data' | 'address' | 'firstToken'>,
  ) {
    this.address = parts.address
    this.firstToken = parts.firstToken
    this.data = parts.data
    this.operations = parts.operations
    this.http = created.http
    this.metrics = context.metrics
    this.#context = context
    this.#created = created
    this.#settings = parts.settings
  }

  reload(reloaded: ReloadableSettings): void {
    const { config, log } = this.#context
    log.level = reloaded.logLevel
    this.#created.limits.setRates(reloaded)
    Object.assign(this.#settings, corsOriginsOf({ ...config, ...reloaded }, this.#settings.baseUrl))
    this.#settings.readOnly = reloaded.readOnly
  }

  async stop(): Promise<void> {
    const { config, closers } = this.#context
    const { servers, connections, stopping, closing } = this.#created
    // From now on readiness is false, and responses close their connections.
    stopping.abort()
    await setTimeout(config.shutdownDelay)
    // Clients of streams connect again at once, and find another service only now.
    closing.abort()
    const deadline = startTimer(() => {
      for (const server of servers) server.closeAllConnections()
    }, config.shutdownTimeout)
    // Repeated, because a connection becomes unused when its request has been answered.
    const closingUnused = setInterval(() => {
      for (const each of connections) each.closeUnused()
    }, closeInterval)
    try {
      await closers.closeAll()
    } finally {
      clearInterval(closingUnused)
      clearTimeout(deadline)
    }
  }
}

/** The free space, from which the uploads of this process claim their bytes. */
export const openSpace = ({ config, peers }: Pick<StartContext, 'config' | 'peers'>): FreeSpace =>
  new FreeSpace({
    readSpaces: createSpaceReader(spacePlaces(config), config.minFree),
    peers,
  })

/** The library that verifies tokens of an issuer is loaded only if it is used. */
const openIssuer = async (...settings: Parameters<typeof import('../access/issuer-users.ts').openIssuer>) =>
  (await import('../access/issuer-users.ts')).openIssuer(...settings)

/** Binds exactly one address, also for a host name that has an IPv4 and an IPv6 address. An error of binding it gets the name of its setting. */
async function openPort(
  { config, closers }: StartContext,
  port: number,
  setting: 'MEDIABUCKET_PORT' | 'MEDIABUCKET_S3_PORT',
): Promise<BoundPort> {
  const { address } = await lookup(config.host, { order: 'ipv4first' })
  const bound = await bindPort(address, port).catch((error) => {
    throw Object.assign(error, { setting })
  })
  closers.add('the port', bound.close)
  return bound
}

/** One line of the log for each problem and minute. Milliseconds. */
const logInterval = 60_000

/** Records downloads in the audit log; null unless MEDIABUCKET_AUDIT is `all`. Start it before the HTTP server, which stops before it. */
function startDownloadLog(
  { config, log, metrics, closers }: StartContext,
  { catalog, space }: Pick<OpenData, 'catalog'> & { readonly space: Pick<FreeSpace, 'read'> },
): DownloadLog | null {
  if (config.audit !== 'all') return null
  const [mayLogLoss, mayLogFailure] = [oncePer(logInterval), oncePer(logInterval)]
  const downloads = new DownloadLog({
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

/** Counts requests and downloads of buckets. Start it before the HTTP server, which stops before it. */
function startUsageLog(
  { log, closers }: StartContext,
  { catalog, space }: Pick<OpenData, 'catalog'> & { readonly space: Pick<FreeSpace, 'read'> },
): UsageLog {
  const mayLogFailure = oncePer(logInterval)
  const usage = new UsageLog({
    catalog,
    now: Date.now,
    hasRoom: () => hasRoomForEvents(space.read()),
    onFailure(err) {
      if (mayLogFailure())
        log.warn({ err }, 'requests and downloads could not be added to the usage of their buckets yet')
    },
  })
  closers.add('the log of usage', async () => {
    const count = await usage.close()
    if (count > 0)
      log.error(
        { count },
        'requests and downloads of some buckets were not added to their usage before the stop',
      )
  })
  return usage
}

/** Reads the built gallery. Null where it is turned off or not built. */
function loadGallery({ config, log }: StartContext): Gallery | null {
  if (!config.gallery) return null
  const gallery = readGallery(galleryDirectory())
  if (gallery === null)
    log.warn(
      'the gallery is not built, so there is no page at /; `npm run build` in packages/gallery builds it',
    )
  return gallery
}

/** The directory of the built files in the gallery's package. */
const galleryDirectory = (): string =>
  fileURLToPath(new URL('dist/', import.meta.resolve('@mediabucket/gallery/package.json')))

/** Creates the bucket `default` and its first token, with all scopes (docs/interface.md A8), in a new catalog. Null if the catalog is not new, or another server creates it. */
export async function issueFirstToken(catalog: Catalog): Promise<string | null> {
  if (!(await catalog.isNew())) return null
  const issued = await issueTokenOfNewBucket(catalog, {
    bucket: 'default',
    name: 'first',
    scopes,
    expiresAt: null,
    now: Date.now(),
  })
  return issued?.token ?? null
}
