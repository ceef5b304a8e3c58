import { lookup } from 'node:dns/promises'
import { statfs } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import type { Logger } from 'pino'
import { issueToken } from './access/issue-token.ts'
import { createVerifyToken } from './access/verify-token.ts'
import { type Config, defaultBaseUrl } from './config.ts'
import { createClosers } from './core/closers.ts'
import { startSweeper } from './core/run-periodically.ts'
import { defaultScopes } from './core/scopes.ts'
import {
  findExposed,
  lockData,
  openBlobs,
  openCatalog,
  openIdentity,
  readSpaces,
  setSpaceAside,
  watchHold,
} from './engines.ts'
import { createApp, pageFormOf } from './http/app.ts'
import { bindPort } from './http/connections/bound-port.ts'
import { limitConnections } from './http/connections/connection-limits.ts'
import { trackUnusedConnections } from './http/connections/unused-connections.ts'
import { readGallery } from './http/gallery/gallery-files.ts'
import { createClientAddresses } from './http/limits/client-address.ts'
import { createRequestLimits } from './http/limits/request-limits.ts'
import { createMetrics } from './http/metrics/metrics.ts'
import { createFindByName } from './media/find-media.ts'
import { createFreeSpace } from './media/free-space.ts'
import { createHeldRemovals } from './media/held-removals.ts'
import { createListMedia } from './media/listing/list-media.ts'
import { createLinkRibbon } from './media/listing/page-link-cache.ts'
import { matchBlobs } from './media/match-blobs.ts'
import { createOpenBytes } from './media/open-bytes.ts'
import { createMeasurePicture } from './media/pictures/measure-picture.ts'
import { createVariants } from './media/pictures/open-variant.ts'
import { createPictureProcesses } from './media/pictures/picture-processes.ts'
import { createReadiness } from './media/readiness.ts'
import { recover } from './media/recover.ts'
import { createRemoveMedia } from './media/remove-media.ts'
import { createStoreMedia } from './media/store-media.ts'
import { createAppendUpload } from './media/uploads/append-upload.ts'
import { createCreateUpload } from './media/uploads/create-upload.ts'
import { createRemoveUpload } from './media/uploads/remove-upload.ts'
import { sweep } from './media/uploads/sweep.ts'
import { createUploadTurns } from './media/uploads/upload-turns.ts'
import { createWatchSpace } from './media/watch-space.ts'
import { appendWithinSpace, createWithinSpace, storeWithinSpace } from './media/within-space.ts'

export interface Server {
  readonly baseUrl: string
  /** The port it listens on, also where the settings left the choice open. */
  readonly port: number
  /** Whether there is a page for people at `/`. */
  readonly hasGallery: boolean
  /** The token of the bucket `default`, on the very first start of these data; null ever after. */
  readonly firstToken: string | null
  /** Takes no new work, lets what is under way finish within the deadline, and gives the data back. */
  stop(): Promise<void>
}

/** Reading a header is short, and uploads wait for it; one that takes long must not hold up the others. */
const measuring = {
  processes: 2,
  queue: 1_000,
  patience: 5_000,
  timeout: 5_000,
  memory: 400_000_000,
  nice: 0,
}

/** Milliseconds after which whoever waits for a variant to be begun had better come again. */
const makingPatience = 30_000

/** So that who lists or uploads goes before who makes pictures. */
const makingIsNice = 10

/** Milliseconds between two looks for connections to close while the service stops. */
const closeInterval = 50

/** Milliseconds between two looks whether a backup that held removals has ended. */
const holdInterval = 1_000

/** Milliseconds between two looks at the free space; uploads look more often. */
const spaceInterval = 1_000

/** Milliseconds between two looks for what has expired, unless it expires faster. */
const sweepInterval = 600_000

/** The composition root. Rejects when the data or the address is taken. */
export async function startServer(
  config: Config,
  log: Logger,
  /** Writes a line about a request where the log goes. */
  writeLine: (line: string) => void,
  onFailure: (error: Error) => void,
): Promise<Server> {
  const closers = createClosers((what, err) => log.error({ err }, `${what} did not close`))
  try {
    const lock = lockData(config)
    closers.add('the data lock', () => lock.release())
    const exposed = findExposed(config)
    if (exposed.length > 0)
      log.warn({ exposed }, `other users may read these in ${config.data}; run: chmod -R go= on each`)
    const metrics = createMetrics()
    const catalog = await openCatalog(config, {
      writer: 'thread',
      onWriterFailure: onFailure,
      onCommit: metrics.storage.observeCommit,
    })
    closers.add('the catalog', () => catalog.close())
    await matchBlobs({ catalog, directory: openIdentity(config) })
    const blobs = await openBlobs(config, { onFailure, onSync: metrics.storage.observeSync })
    closers.add('the blob store', () => blobs.close())
    const hold = watchHold(config)
    closers.add('the removal hold', () => hold.close())
    const removing = {
      catalog,
      blobs,
      isHeld: hold.isHeld,
      onLeftover: (id: string, err: unknown) =>
        log.warn({ id, err }, 'bytes of a deleted item stay until the next start'),
    }
    const held = createHeldRemovals({
      ...removing,
      onHoldFailure: (err) =>
        log.error(
          { err },
          'hold.db cannot be read, so the bytes of deleted items stay; restart the service if this goes on',
        ),
    })
    const erasing = { ...removing, isHeld: held.isHeld }
    const { leftovers, ...cleared } = await recover(erasing)
    for (const { id, error } of leftovers) erasing.onLeftover(id, error)
    if (cleared.temporary + cleared.tombstones + cleared.rewound + cleared.orphans > 0) {
      log.info(cleared, 'cleared what an interrupted run had left behind')
    }
    const { remove, settled } = createRemoveMedia(erasing)
    closers.add('the removal of bytes', settled)
    const retrier = startSweeper({
      work: held.retry,
      interval: holdInterval,
      onFailure: (err) => log.warn({ err }, 'bytes that a backup held stay until the next look'),
    })
    closers.add('the removal retry', () => retrier.stop())

    const measurers = createPictureProcesses(measuring)
    closers.add('the dimension workers', () => measurers.close())
    const measurePicture = createMeasurePicture({ blobs, processes: measurers })

    const space = createFreeSpace({ readSpaces: () => readSpaces(config), now: () => performance.now() })
    const watchSpace = createWatchSpace({
      space,
      setSpaceAside: () => setSpaceAside(config),
      onFull: (full) =>
        log.error(
          { full },
          `uploads are refused until there is more free space on the disk of ${config.data}`,
        ),
      onRoom: () => log.info('uploads are accepted again'),
    })
    const spaceWatcher = startSweeper({
      work: watchSpace,
      interval: spaceInterval,
      onFailure: (err) => log.warn({ err }, 'the free space of the disk cannot be read'),
    })
    closers.add('the watch of free space', () => spaceWatcher.stop())

    const turns = createUploadTurns()
    closers.add('resumable uploads', () => turns.settled())
    const { maxFileSize, uploadExpiry: expiry } = config
    const uploading = {
      catalog,
      blobs,
      measurePicture,
      turns,
      maxFileSize,
      expiry,
      now: Date.now,
      removeMedia: remove,
    }
    await sweep(uploading)
    const sweeper = startSweeper({
      work: () => sweep(uploading),
      interval: Math.min(expiry, sweepInterval),
      onFailure: (err) => log.warn({ err }, 'what has expired stays until the next sweep'),
    })
    closers.add('the expiry sweep', () => sweeper.stop())

    // One address, also for a name with two.
    const { address } = await lookup(config.host, { order: 'ipv4first' })
    const bound = await bindPort(address, config.port)
    closers.add('the port', () => bound.close())
    const { port } = bound
    const baseUrl = config.baseUrl ?? defaultBaseUrl(config.host, port)
    const { mediaBaseUrl } = config
    // The gallery reads texts from the media host by fetch.
    const corsOrigins =
      mediaBaseUrl === null ? config.corsOrigins : [...config.corsOrigins, new URL(baseUrl).origin]
    const settings = { ...config, baseUrl, hasOwnAddress: config.baseUrl !== null, corsOrigins }
    const ribbon = createLinkRibbon(baseUrl, config.linkRibbon)
    metrics.watchPageLinkCache(() => ribbon.held())
    metrics.storage.watch({ figures: () => catalog.figures(), space: () => spaceOf(config.data) })
    const addresses = createClientAddresses(config.trustedProxies)
    const limits = createRequestLimits(config, { addresses, metrics, log })
    const openBytes = createOpenBytes({ catalog, blobs })
    const makers = createPictureProcesses({
      processes: config.variantProcesses,
      queue: config.variantQueue,
      patience: makingPatience,
      timeout: config.variantTimeout,
      memory: config.variantMemory,
      nice: makingIsNice,
    })
    const variants = createVariants({
      catalog,
      blobs,
      openBytes,
      processes: makers,
      maxPixels: config.variantMegapixels * 1e6,
      hasRoom: space.hasRoom,
      onMade: ({ variant, seconds, outcome }) =>
        metrics.variantSeconds.observe({ variant, outcome }, seconds),
      onTooHard: (id, err) => log.warn({ id, err }, 'a picture was too hard; it has no variants for a while'),
      onUnkept: (id, err) => log.warn({ id, err }, 'a variant was made and could not be kept'),
      onUnsupported: (reason) => log.error({ reason }, 'pictures cannot be made on this machine'),
    })
    closers.add('variants', () => variants.settled())
    closers.add('the thumbnail workers', () => makers.close())
    const gallery = config.gallery ? await readGallery(galleryDirectory()) : null
    if (config.gallery && gallery === null) {
      log.warn(
        'the gallery is not built, so there is no page at /; `npm run build` in packages/gallery builds it',
      )
    }
    let stopping = false
    const app = await createApp(
      {
        verifyToken: createVerifyToken({
          catalog,
          now: Date.now,
          onTouchFailure: (err) => log.warn({ err }, 'the last use of a token was not recorded'),
        }),
        listMedia: createListMedia({
          catalog,
          form: pageFormOf(settings),
          envelope: config.envelope,
          ribbon,
          cacheSize: config.pageCache,
        }),
        storeMedia: storeWithinSpace(space, createStoreMedia(uploading)),
        createUpload: createWithinSpace(space, createCreateUpload(uploading)),
        appendUpload: appendWithinSpace(space, createAppendUpload(uploading)),
        removeUpload: createRemoveUpload(uploading),
        settleUpload: turns.settle,
        removeMedia: remove,
        findByName: createFindByName({ catalog }),
        openBytes,
        openVariant: variants.open,
        readiness: createReadiness({ catalog, space, hasBytes: blobs.isReachable }),
      },
      { catalog, settings, log, writeLine, isStopping: () => stopping, gallery, metrics, limits },
    )
    const connections = trackUnusedConnections(app.server)
    limitConnections(app.server, config, { addresses, metrics, log, baseUrl })
    closers.add('the HTTP server', () => Promise.all([bound.close(), app.close()]))
    await app.ready()
    await bound.serve(app.server)

    const firstToken = (await catalog.isNew())
      ? await issueToken(catalog, {
          bucket: 'default',
          name: 'first',
          scopes: defaultScopes,
          expiresAt: null,
          now: Date.now(),
        })
      : null

    return {
      baseUrl,
      port,
      hasGallery: gallery !== null,
      firstToken: firstToken?.token ?? null,
      async stop() {
        stopping = true
        const deadline = setTimeout(() => app.server.closeAllConnections(), config.shutdownTimeout)
        // Again and again: a connection whose request is answered would be kept alive.
        const closing = setInterval(() => connections.closeUnused(), closeInterval)
        try {
          await closers.closeAll()
        } finally {
          clearInterval(closing)
          clearTimeout(deadline)
        }
      },
    }
  } catch (error) {
    await closers.closeAll().catch(() => undefined)
    throw error
  }
}

/** Where the package of the gallery has its built files. */
const galleryDirectory = (): string =>
  fileURLToPath(new URL('dist/', import.meta.resolve('@mediabucket/gallery/package.json')))

/** Of the file system that holds a directory. Bytes. */
async function spaceOf(directory: string): Promise<{ free: number; total: number }> {
  const { bsize, bavail, blocks } = await statfs(directory)
  return { free: bavail * bsize, total: blocks * bsize }
}
