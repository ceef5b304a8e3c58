import { randomUUID } from 'node:crypto'
import type { RequestListener } from 'node:http'
import fastify, {
  type FastifyBaseLogger,
  type FastifyInstance,
  type FastifyRequest,
  LogController,
} from 'fastify'
import type { OpenBlob } from '../blobs/blobs.ts'
import type { BucketId, Catalog, Grant, Media } from '../catalog/catalog.ts'
import { Fault } from '../core/fault.ts'
import type { PageSettings } from '../core/page.ts'
import type { UploadId } from '../core/upload-id.ts'
import type { Readiness } from '../media/check-readiness.ts'
import type { ListMedia } from '../media/listing/list-media.ts'
import type { Variants } from '../media/pictures/open-variant.ts'
import type { StoreMedia } from '../media/store-media.ts'
import type { AppendUpload } from '../media/uploads/append-upload.ts'
import type { CreateUpload } from '../media/uploads/create-upload.ts'
import type { RemoveUpload } from '../media/uploads/remove-upload.ts'
import { trackRouteMethods } from './allowed-methods.ts'
import { createBackpressure } from './bodies/backpressure.ts'
import { createBodyReader } from './bodies/body-reader.ts'
import { discardBody, discardUnreadBody, handleExpectations, hasBody } from './bodies/unread-bodies.ts'
import { createClientErrorHandler } from './connections/client-errors.ts'
import { createHttpServer, maxHeaderSize } from './connections/http-server.ts'
import { closeOnIdleTimeout } from './connections/idle-timeout.ts'
import { refuseTunnels, requireHttp1 } from './connections/require-http1.ts'
import { closeSlowReaders } from './connections/slow-readers.ts'
import type { Gallery } from './gallery/gallery-files.ts'
import { galleryRoutes } from './gallery/serve-gallery.ts'
import { createCorsPolicy, varyHeader } from './headers/cors.ts'
import { requireHostHeader } from './headers/raw-headers.ts'
import type { RequestLimits } from './limits/request-limits.ts'
import { coalesceRequests } from './listing/coalesce-requests.ts'
import { createListingFastPath } from './listing/fast-path.ts'
import { listMediaRoute } from './listing/list-media.ts'
import { createListingResponder } from './listing/listing-response.ts'
import { describeBucketRoute } from './media/describe-bucket.ts'
import { refuseCodeDestination, refuseServiceWorker } from './media/fetch-metadata.ts'
import { findMediaRoute } from './media/find-media.ts'
import { createMediaHost } from './media/media-host.ts'
import { removeMediaRoute } from './media/remove-media.ts'
import { bytesPath, serveBytesRoute } from './media/serve-bytes.ts'
import { storeMediaRoute } from './media/store-media.ts'
import type { Metrics } from './metrics/metrics.ts'
import { createRequestLogger, type LoggedRequest, type WriteLine } from './metrics/request-log.ts'
import { monitoringRoutes } from './monitoring-routes.ts'
import { collectOperations } from './openapi/collect-operations.ts'
import { documentationRoutes } from './openapi/documentation-routes.ts'
import { explainProblemRoute } from './openapi/explain-problem.ts'
import { createErrorHandler } from './problems/error-handler.ts'
import { createAuthorizationVerifier, createAuthorizer } from './tokens/authorizer.ts'
import { describeTokenRoute } from './tokens/describe-token.ts'
import { resumableUploadsRoute } from './uploads/resumable-uploads.ts'

/** The operations that the wire carries. */
export interface Operations {
  readonly verifyToken: (token: string) => Promise<Grant>
  readonly listMedia: ListMedia
  readonly storeMedia: StoreMedia
  readonly createUpload: CreateUpload
  readonly appendUpload: AppendUpload
  readonly removeUpload: RemoveUpload
  /** Waits for the request that writes to the upload (UploadLocks). */
  readonly waitForWriter: (id: UploadId) => Promise<void>
  readonly removeMedia: (bucketId: BucketId, id: string) => Promise<void>
  readonly findByName: (name: string) => Promise<Media>
  readonly openBytes: (media: Media) => Promise<OpenBlob>
  readonly openVariant: Variants['open']
  readonly readiness: () => Promise<Readiness>
}

/** The settings of the wire; durations are milliseconds, sizes bytes. */
export interface HttpSettings extends Omit<PageSettings, 'mediaBaseUrl'> {
  readonly mediaBaseUrl: string | null
  /** The base URL is configured, and does not follow host and port. */
  readonly hasOwnAddress: boolean
  readonly envelope: 'bare' | 'wrapped'
  readonly corsOrigins: readonly string[]
  readonly maxFileSize: number
  readonly maxParts: number
  readonly mediaMaxAge: number
  readonly headerTimeout: number
  readonly idleTimeout: number
  /** Bytes per second; 0 for none. */
  readonly minSendRate: number
}

/** The largest body that an operation other than an upload reads. Bytes. */
const smallBody = 65_536

/** Bytes of all bodies together that have been read and are not processed yet. */
const bodiesHeld = 8 * 1024 * 1024

/** The HTTP service, ready to listen. */
export async function createApp(
  operations: Operations,
  parts: {
    catalog: Catalog
    settings: HttpSettings
    log: FastifyBaseLogger
    writeLine: WriteLine
    isStopping: () => boolean
    /** Null where there is no page at `/`. */
    gallery: Gallery | null
    metrics: Metrics
    limits: RequestLimits
  },
): Promise<FastifyInstance> {
  const { catalog, settings, log, writeLine, isStopping, gallery, metrics, limits } = parts
  const { baseUrl } = settings
  const form = pageSettingsOf(settings)
  const mediaHost = createMediaHost(baseUrl, settings.mediaBaseUrl)
  const verifyAuthorization = createAuthorizationVerifier(operations.verifyToken)
  const authorize = createAuthorizer(verifyAuthorization, limits)
  const logRequest = createRequestLogger(metrics, writeLine)
  const corsHeaders = createCorsPolicy(settings.corsOrigins)
  const answerError = createErrorHandler(baseUrl, limits, metrics.storage.countError)
  const readBody = createBodyReader(createBackpressure(bodiesHeld))
  const respondToListing = createListingResponder({
    listMedia: operations.listMedia,
    form,
    envelope: settings.envelope,
    epoch: catalog.epoch,
    vary: varyHeader(settings.corsOrigins, 'Authorization', 'Accept-Encoding'),
  })
  const app: FastifyInstance = fastify({
    serverFactory: (framework) => {
      const others: RequestListener = (request, response) => {
        discardUnreadBody(request, response)
        framework(request, response)
      }
      const listings = createListingFastPath(
        {
          respondToListing: coalesceRequests({
            verifyAuthorization,
            countToken: limits.countToken,
            answer: respondToListing,
            corsHeaders,
          }),
          logRequest,
          corsHeaders,
          limits,
          countError: metrics.storage.countError,
          baseUrl,
          log,
          isStopping,
        },
        others,
      )
      const hosts = mediaHost?.split(listings, others) ?? listings
      return createHttpServer(settings, requireHttp1({ logRequest, baseUrl }, hosts))
    },
    loggerInstance: log,
    logController: new LogController({ disableRequestLogging: true, requestIdLogLabel: 'requestId' }),
    genReqId: () => randomUUID(),
    forceCloseConnections: 'idle',
    // What still arrives on open connections while the service stops is answered as ever, and /readyz says 503.
    return503OnClosing: false,
    // Names in paths are judged by their guards; the limit of the headers bounds them.
    routerOptions: { maxParamLength: maxHeaderSize },
    clientErrorHandler: createClientErrorHandler({ baseUrl, log, newRequestId: randomUUID }),
    // A path that cannot be decoded meets no hooks.
    frameworkErrors: (error, request, reply) => {
      logRequest(loggedRequest(request), reply.raw)
      reply.headers(corsHeaders(request.headers))
      answerError(limits.countAddress(request.raw) ?? error, request, reply)
    },
  })

  app.addHook('onRequest', async (request, reply) => {
    logRequest(loggedRequest(request), reply.raw)
    const { config } = request.routeOptions
    reply.headers({ ...corsHeaders(request.headers), ...config.headers })
    const limited = config.description?.unlimited ? null : limits.countAddress(request.raw)
    if (limited) throw limited
    requireHostHeader(request)
    // Before the body is looked at, as with methods that are not allowed.
    if (request.is404) throw new Fault('route-unknown', 'The service has no such path.')
    // Of these methods the framework leaves bodies unread.
    if ((request.method === 'GET' || request.method === 'HEAD') && hasBody(request.raw))
      await discardBody(request.raw, smallBody)
    refuseServiceWorker(request.headers)
    const isBytes = request.routeOptions.url === bytesPath
    if (isBytes) refuseCodeDestination(request.headers)
    const elsewhere = mediaHost?.check(request.raw, isBytes) ?? null
    if (elsewhere !== null) return reply.header('cache-control', redirectCaching).redirect(elsewhere, 308)
    return undefined
  })
  handleExpectations(app.server)
  refuseTunnels(app.server, { baseUrl, log })
  closeOnIdleTimeout(app.server, settings.idleTimeout)
  closeSlowReaders(app.server, settings, () => metrics.slowReaders.inc())
  app.setErrorHandler(answerError)
  // No operation but the upload takes a body; what comes is read up to a small limit and ignored.
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', async ({ raw }: FastifyRequest) => discardBody(raw, smallBody))

  const methods = trackRouteMethods(app)
  const descriptions = collectOperations(app)
  listMediaRoute(app, { authorize, respondToListing })
  await app.register((scope) =>
    storeMediaRoute(scope, {
      authorize,
      readBody,
      storeMedia: operations.storeMedia,
      form,
      maxFileSize: settings.maxFileSize,
      maxParts: settings.maxParts,
      metrics,
    }),
  )
  await app.register((scope) =>
    resumableUploadsRoute(scope, {
      ...operations,
      authorize,
      readBody,
      catalog,
      baseUrl,
      maxFileSize: settings.maxFileSize,
      metrics,
    }),
  )
  findMediaRoute(app, { authorize, catalog, form })
  removeMediaRoute(app, { authorize, removeMedia: operations.removeMedia, metrics })
  serveBytesRoute(app, {
    findByName: operations.findByName,
    openBytes: operations.openBytes,
    openVariant: operations.openVariant,
    maxAge: settings.mediaMaxAge,
    countError: metrics.storage.countError,
  })
  describeBucketRoute(app, { authorize, catalog })
  describeTokenRoute(app, { authorize, catalog })
  explainProblemRoute(app, varyHeader(settings.corsOrigins, 'Accept'))
  monitoringRoutes(app, { readiness: operations.readiness, isStopping, metrics })
  documentationRoutes(app, { descriptions, settings })
  descriptions.close()
  // For people, and no operation of the interface: nothing of it is described.
  if (gallery)
    galleryRoutes(app, { gallery, settings, vary: varyHeader(settings.corsOrigins, 'Accept-Encoding') })
  methods.close()
  return app
}

/** Short, since the address of the bytes may be set otherwise later. */
const redirectCaching = 'public, max-age=300'

/** What of the settings shapes pages and media URLs. */
export const pageSettingsOf = ({
  baseUrl,
  mediaBaseUrl,
  extensions,
  links,
}: Omit<PageSettings, 'mediaBaseUrl'> & { readonly mediaBaseUrl: string | null }): PageSettings => ({
  baseUrl,
  extensions,
  links,
  ...(mediaBaseUrl === null ? {} : { mediaBaseUrl }),
})

const loggedRequest = ({ id, method, originalUrl, routeOptions }: FastifyRequest): LoggedRequest => ({
  id,
  method,
  url: originalUrl,
  route: routeOptions.url ?? 'unknown',
})
