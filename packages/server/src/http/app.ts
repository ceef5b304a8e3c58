import type { FastifyInstance } from 'fastify'
import { createVariantList } from '../core/variant.ts'
import { trackRouteMethods } from './allowed-methods.ts'
import type { AppParts, Operations } from './app-parts.ts'
import { createBackpressure } from './bodies/backpressure.ts'
import { createBodyReader, createWholeBodyReader } from './bodies/body-reader.ts'
import { addRequestChecks } from './check-requests.ts'
import { guardConnections } from './connections/guard-connections.ts'
import { createFramework } from './create-framework.ts'
import { galleryRoutes } from './gallery/serve-gallery.ts'
import { createFormatChoice } from './headers/accept.ts'
import { createCorsPolicy, createRefusalHint, varyHeader } from './headers/cors.ts'
import { createListingResponder } from './listing/listing-response.ts'
import { createBytesResponder } from './media/bytes-response.ts'
import { createCachedResponses } from './media/cached-responses.ts'
import { createDownloadRecorder } from './media/download-recorder.ts'
import { createMediaHost } from './media/media-host.ts'
import { createBodyPreparer } from './media/prepare-body.ts'
import { createAccessCheck } from './media/private-access.ts'
import { createRequestLogger } from './metrics/request-log.ts'
import { collectOperations } from './openapi/collect-operations.ts'
import { createErrorHandler } from './problems/error-handler.ts'
import { createFaultReporter } from './problems/report-fault.ts'
import { createRequestListener } from './request-listener.ts'
import { addRoutes } from './routes.ts'
import { createAuthorizationVerifier, createAuthorizer } from './tokens/authorizer.ts'

/** The limit of bytes of all bodies that have been read and are not processed yet. */
const maxUnprocessedBytes = 8 * 1024 * 1024

/** Creates the HTTP service, ready to listen. */
export async function createApp(operations: Operations, parts: AppParts): Promise<FastifyInstance> {
  const { catalog, settings, log, metrics, limits, addresses, gallery, downloadLog } = parts
  const { baseUrl, corsOrigins } = settings
  const verifyAuthorization = createAuthorizationVerifier(operations.verifyToken)
  const authorize = createAuthorizer(verifyAuthorization, limits, addresses)
  const backpressure = createBackpressure(maxUnprocessedBytes)
  const readBody = createBodyReader(backpressure)
  const respondToListing = createListingResponder({
    ...operations,
    pageSettings: settings,
    envelope: settings.envelope,
    epoch: catalog.epoch,
    vary: varyHeader(corsOrigins, 'Authorization', 'Accept-Encoding'),
  })
  const countStorageError = metrics.storage.countError
  const pictures = { variants: createVariantList(settings.variants), formatFor: createFormatChoice() }
  const cachedResponses = createCachedResponses({
    ...operations,
    ...pictures,
    servability: catalog.servability,
  })
  const recordDownload = downloadLog && createDownloadRecorder(downloadLog, addresses.wholeOfRequest)
  const respondToBytes = createBytesResponder({
    ...operations,
    ...cachedResponses,
    ...pictures,
    checkAccess: createAccessCheck({ verifyLink: operations.verifyLink, authorize }),
    prepareBody: createBodyPreparer((err, requestId) => {
      countStorageError(err)
      log.error({ requestId, err }, 'a response was aborted')
    }),
    recordDownload,
    maxAge: settings.mediaMaxAge,
    sendFile: settings.sendfile,
    vary: {
      inline: varyHeader(corsOrigins),
      attachment: varyHeader(corsOrigins, 'Sec-Fetch-Dest'),
      variant: varyHeader(corsOrigins, 'Accept'),
    },
  })
  const reportFault = createFaultReporter({ limits, countStorageError, log })
  const ownOrigins = [baseUrl, settings.mediaBaseUrl].map((url) => new URL(url).origin)
  // Used by the fast paths and by the framework.
  const handling = {
    logRequest: createRequestLogger(metrics, parts.writeLine),
    corsHeaders: createCorsPolicy(corsOrigins, createRefusalHint(ownOrigins, log)),
    mediaHost: createMediaHost(baseUrl, settings.mediaBaseUrl),
    handleError: createErrorHandler(baseUrl, reportFault),
    limits,
  }

  const app = createFramework({
    ...handling,
    settings,
    log,
    createListener: (framework) =>
      createRequestListener(
        {
          ...handling,
          ...operations,
          verifyAuthorization,
          authorize,
          readBody,
          readWholeBody: createWholeBodyReader(backpressure),
          smallFileSize: Math.min(settings.inlineSize, settings.maxFileSize),
          urlSettings: settings,
          metrics,
          respondToListing,
          respondToBytes,
          cachedResponses,
          recordDownload,
          reportFault,
          baseUrl,
          isStopping: parts.isStopping,
        },
        framework,
      ),
  })
  guardConnections(app.server, { settings, log, onSlowReader: () => metrics.slowReaders.inc() })
  addRequestChecks(app, handling)

  const routeMethods = trackRouteMethods(app)
  const operationList = collectOperations(app)
  await addRoutes(app, {
    ...parts,
    operations,
    operationList,
    authorize,
    readBody,
    respondToListing,
    respondToBytes,
    corsHeaders: handling.corsHeaders,
  })
  operationList.close()
  if (gallery)
    galleryRoutes(app, {
      gallery,
      settings,
      signIn: parts.signIn,
      vary: varyHeader(corsOrigins, 'Accept-Encoding'),
    })
  routeMethods.addOtherMethods()
  return app
}
