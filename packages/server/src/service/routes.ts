import type { Server } from 'node:http'
import { keyRoutes } from '../access/key-routes.ts'
import { createServiceAuthorizer } from '../access/service-access.ts'
import { createAuthorizationVerifier, createAuthorizer } from '../access/token-operations.ts'
import { tokenRoutes } from '../access/token-routes.ts'
import { auditRoutes } from '../audit/audit-routes.ts'
import { bucketRoutes } from '../buckets/bucket-routes.ts'
import { usageRoutes } from '../buckets/usage-routes.ts'
import { bytesRoutes } from '../downloads/bytes-routes.ts'
import type { DownloadLog } from '../downloads/download-log.ts'
import { changeRoutes } from '../feed/change-routes.ts'
import { serializeProblem } from '../http/client-connections.ts'
import { createHttpContext, type HttpContext, type HttpParts } from '../http/context.ts'
import { Dispatcher, MediaHost } from '../http/dispatcher.ts'
import { createRequestLogger, type RequestLines } from '../http/request-log.ts'
import type { Route } from '../http/route.ts'
import { createHttpServer } from '../http/server.ts'
import { UnreadBytes } from '../http/unread-bytes.ts'
import { itemListRoutes } from '../items/item-list-routes.ts'
import { itemRoutes } from '../items/item-routes.ts'
import { linkRoutes } from '../items/link-routes.ts'
import { trashRoutes } from '../items/trash-routes.ts'
import { listingRoutes } from '../listing/listing-routes.ts'
import { createS3Server } from '../s3/s3-server.ts'
import { resumableUploadRoutes } from '../uploads/resumable-routes.ts'
import { uploadRoutes } from '../uploads/upload-routes.ts'
import { urlUploadRoutes } from '../uploads/url-upload-routes.ts'
import { webhookRoutes } from '../webhooks/webhook-routes.ts'
import { documentationRoutes } from './documentation-routes.ts'
import { type Gallery, type GallerySignIn, galleryRoutes, type S3Door } from './gallery-routes.ts'
import { type McpParts, mcpRoutes } from './mcp-routes.ts'
import { monitoringRoutes } from './monitoring.ts'
import type { Operations } from './operations.ts'

/** What only some routes use. */
interface AppParts {
  readonly requestLines: RequestLines
  /** Null where downloads are not recorded. */
  readonly downloadLog: DownloadLog | null
  /** Null where the gallery is off or not built. */
  readonly gallery: Gallery | null
  /** Null where people sign in with tokens only. */
  readonly signIn: GallerySignIn | null
  /** Null where the Model Context Protocol is off. */
  readonly mcp: Pick<McpParts, 'handle' | 'canWrite' | 'ownFetch'> | null
  /** Null where the S3 protocol is off. */
  readonly s3: S3Door | null
}

/** Creates the HTTP server, and that of the S3 protocol, ready to listen. */
export function createApp(
  operations: Operations,
  parts: HttpParts,
  { requestLines, downloadLog, gallery, signIn, mcp, s3 }: AppParts,
): { readonly http: Server; readonly s3: Server | null } {
  const { verifyToken, service, requireOwnBucket } = operations.access
  const { verifyInBucket } = service
  const verifyAuthorization = createAuthorizationVerifier(verifyToken, { verifyInBucket, requireOwnBucket })
  const authorize = createAuthorizer(verifyAuthorization, parts.limits, parts.addresses, parts.usage)
  const authorizeService = createServiceAuthorizer(
    service,
    verifyAuthorization,
    parts.limits,
    parts.addresses,
  )
  const http = createHttpContext(parts, { verifyAuthorization, authorize, authorizeService })
  const { settings, log, metrics, limits, corsHeaders, stopping, reportFault } = http
  const { baseUrl, mediaBaseUrl } = settings
  const routes = [
    ...serviceRoutes(http, operations, downloadLog),
    ...(gallery ? galleryRoutes(http, gallery, { signIn, s3 }) : []),
    ...(mcp ? mcpRoutes({ ...mcp, http }) : []),
  ]
  const logRequest = createRequestLogger(metrics, http.addresses, requestLines, http.catalog.epoch)
  const unread = new UnreadBytes({
    limit: parts.responseMemory,
    onClose: () => metrics.unreadClosed.inc(),
  })
  metrics.watchUnreadBytes(() => unread.total())
  const dispatcher = new Dispatcher(routes, {
    ...{ baseUrl, logRequest, corsHeaders, limits, reportFault },
    mediaHost: mediaBaseUrl === baseUrl ? null : new MediaHost(baseUrl, mediaBaseUrl),
    stopping,
    isReadOnly: () => settings.readOnly,
  })
  return {
    http: createHttpServer((request, response) => dispatcher.dispatch(request, response), {
      ...{ settings, log, metrics, unread, corsHeaders },
      serializeFault: (fault, requestId, more) => serializeProblem(fault, baseUrl, requestId, more),
    }),
    s3:
      s3 &&
      createS3Server(
        http,
        {
          accessKeys: operations.access.keys,
          objects: operations.objects,
          multiparts: operations.multiparts,
          deleter: operations.buckets.deleter,
          ...operations.downloads,
        },
        { ...s3, downloadLog, logRequest, reportFault, unread },
      ),
  }
}

/** The routes of the OpenAPI document, in its order. */
export function serviceRoutes(
  http: HttpContext,
  operations: Operations,
  downloadLog: DownloadLog | null,
): readonly Route[] {
  const routes: readonly Route[] = [
    ...listingRoutes(http, operations.listing),
    ...itemListRoutes(http, operations.items),
    ...changeRoutes(http, operations.changes),
    ...uploadRoutes(http, operations.uploads),
    ...urlUploadRoutes(http, operations.uploads.urlUploads),
    ...resumableUploadRoutes(http, operations.uploads),
    ...itemRoutes(http, operations.items),
    ...trashRoutes(http, operations.items),
    ...linkRoutes(http, operations.items),
    ...bytesRoutes(http, operations.downloads, downloadLog),
    ...tokenRoutes(http),
    ...bucketRoutes(http, operations.buckets),
    ...usageRoutes(http, operations.buckets),
    ...keyRoutes(http),
    ...auditRoutes(http, operations.audit.reader),
    ...webhookRoutes(http, operations.webhooks, http.settings.webhookAllow),
    ...monitoringRoutes(http, operations.monitoring),
    ...documentationRoutes(http, () => routes),
  ]
  return routes
}
