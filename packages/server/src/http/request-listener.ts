import type { RequestListener } from 'node:http'
import { discardUnreadBody } from './bodies/unread-bodies.ts'
import { requireHttp1 } from './connections/require-http1.ts'
import type { RequestLimits } from './limits/request-limits.ts'
import { coalesceRequests } from './listing/coalesce-requests.ts'
import { createListingFastPath } from './listing/fast-path.ts'
import type { ListingResponder } from './listing/listing-response.ts'
import { createBytesFastPath } from './media/bytes-fast-path.ts'
import type { BytesResponder } from './media/bytes-response.ts'
import type { CachedResponses } from './media/cached-responses.ts'
import type { DownloadRecorder } from './media/download-recorder.ts'
import type { MediaHost } from './media/media-host.ts'
import { createUploadFastPath, type UploadFastPathParts } from './media/upload-fast-path.ts'
import type { RequestLogger } from './metrics/request-log.ts'
import type { FaultReporter } from './problems/report-fault.ts'
import { createDirectServer } from './problems/serve-directly.ts'
import type { AuthorizationVerifier } from './tokens/authorizer.ts'

/** The server's listener: refuses other protocols, sends listings, bytes and small uploads to their fast paths and all else to the framework. */
export function createRequestListener(
  parts: Omit<UploadFastPathParts, 'direct'> & {
    readonly verifyAuthorization: AuthorizationVerifier
    readonly respondToListing: ListingResponder
    readonly respondToBytes: BytesResponder
    readonly cachedResponses: CachedResponses
    readonly recordDownload: DownloadRecorder | null
    readonly logRequest: RequestLogger
    readonly limits: RequestLimits
    readonly reportFault: FaultReporter
    readonly mediaHost: MediaHost | null
    readonly baseUrl: string
  },
  framework: RequestListener,
): RequestListener {
  const { limits, mediaHost } = parts
  const useFramework: RequestListener = (request, response) => {
    discardUnreadBody(request, response)
    framework(request, response)
  }
  const respondToListing = coalesceRequests({ ...parts, countToken: limits.countToken })
  const direct = createDirectServer(parts)
  const serveBytes = createBytesFastPath({ ...parts, direct }, useFramework)
  const storeSmallFiles = createUploadFastPath({ ...parts, direct }, serveBytes)
  const serve = createListingFastPath({ ...parts, respondToListing, direct }, storeSmallFiles)
  return requireHttp1(parts, mediaHost?.routeByHost(serve, serveBytes) ?? serve)
}
