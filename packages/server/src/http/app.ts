import type { Server } from 'node:http'
import { createHttpServer } from './connections/http-server.ts'
import { createHttpContext, type HttpContext, type HttpParts } from './context.ts'
import { documentationRoutes } from './documentation-routes.ts'
import type { Gallery } from './gallery/gallery-files.ts'
import { type GallerySignIn, galleryRoutes } from './gallery/gallery-routes.ts'
import { itemListRoutes } from './items/item-list-routes.ts'
import { listingRoutes } from './listing/listing-routes.ts'
import { bytesRoutes } from './media/bytes-routes.ts'
import { itemRoutes } from './media/item-routes.ts'
import { linkRoutes } from './media/link-routes.ts'
import { trashRoutes } from './media/trash-routes.ts'
import { uploadRoutes } from './media/upload-routes.ts'
import { createRequestLogger, type LineWriter } from './metrics/request-log.ts'
import { monitoringRoutes } from './monitoring-routes.ts'
import type { Operations } from './operations.ts'
import { createFaultReporter } from './problems/report-fault.ts'
import { createDispatcher } from './routing/dispatcher.ts'
import { createMediaHost } from './routing/media-host.ts'
import type { Route } from './routing/route.ts'
import { tokenRoutes } from './tokens/token-routes.ts'
import { resumableUploadRoutes } from './uploads/resumable-upload-routes.ts'

/** What only some routes use. */
interface AppParts {
  readonly writeLine: LineWriter
  /** Null where the gallery is off or not built. */
  readonly gallery: Gallery | null
  /** Null where people sign in with tokens only. */
  readonly signIn: GallerySignIn | null
}

/** Creates the HTTP server, ready to listen. */
export function createApp(
  operations: Operations,
  parts: HttpParts,
  { writeLine, gallery, signIn }: AppParts,
): Server {
  const http = createHttpContext(parts, operations.verifyToken)
  const { settings, log, metrics, limits, corsHeaders, isStopping } = http
  const { baseUrl, mediaBaseUrl } = settings
  const routes = [
    ...serviceRoutes(http, operations),
    ...(gallery ? galleryRoutes(http, gallery, signIn) : []),
  ]
  const dispatch = createDispatcher(routes, {
    baseUrl,
    logRequest: createRequestLogger(metrics, writeLine),
    corsHeaders,
    limits,
    mediaHost: createMediaHost(baseUrl, mediaBaseUrl),
    reportFault: createFaultReporter({ limits, countStorageError: metrics.storage.countError, log }),
    isStopping,
  })
  return createHttpServer(dispatch, { settings, log, onSlowReader: () => metrics.slowReaders.inc() })
}

/** The routes of the OpenAPI document, in its order. */
function serviceRoutes(http: HttpContext, operations: Operations): readonly Route[] {
  const routes: readonly Route[] = [
    ...listingRoutes(http, operations),
    ...itemListRoutes(http, operations),
    ...uploadRoutes(http, operations),
    ...resumableUploadRoutes(http, operations),
    ...itemRoutes(http, operations),
    ...trashRoutes(http, operations),
    ...linkRoutes(http, operations),
    ...bytesRoutes(http, operations),
    ...tokenRoutes(http),
    ...monitoringRoutes(http, operations),
    ...documentationRoutes(http, () => routes),
  ]
  return routes
}
