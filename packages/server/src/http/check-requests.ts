import type { FastifyInstance } from 'fastify'
import { Fault } from '../core/fault.ts'
import { discardBody, hasBody } from './bodies/unread-bodies.ts'
import type { CorsPolicy } from './headers/cors.ts'
import { requireHostHeader } from './headers/raw-headers.ts'
import type { RequestLimits } from './limits/request-limits.ts'
import { refuseCodeDestination, refuseServiceWorker } from './media/fetch-metadata.ts'
import type { MediaHost } from './media/media-host.ts'
import { bytesPath } from './media/serve-bytes.ts'
import { loggedRequest, type RequestLogger } from './metrics/request-log.ts'

/** The largest body that is read and discarded where an operation takes none (docs/interface.md N5). Bytes. */
export const maxIgnoredBody = 65_536

/** Short, because the media base URL may change. */
const redirectCaching = 'public, max-age=300'

/** Logs each request, sets the headers of its response, and refuses what no operation accepts. */
export function addRequestChecks(
  app: FastifyInstance,
  parts: {
    readonly logRequest: RequestLogger
    readonly corsHeaders: CorsPolicy
    readonly limits: RequestLimits
    readonly mediaHost: MediaHost | null
  },
): void {
  const { logRequest, corsHeaders, limits, mediaHost } = parts
  app.addHook('onRequest', async (request, reply) => {
    logRequest(loggedRequest(request), reply.raw)
    const { config, url } = request.routeOptions
    reply.headers({ ...corsHeaders(request.headers), ...config.headers })
    const refusal = config.description?.unlimited ? null : limits.countAddress(request.raw)
    if (refusal) throw refusal
    requireHostHeader(request)
    // An unknown path is refused before the body is read, as an unsupported method is.
    if (request.is404) throw new Fault('route-unknown', 'The service has no such path.')
    // The framework does not read the bodies of GET and HEAD.
    if ((request.method === 'GET' || request.method === 'HEAD') && hasBody(request.raw))
      await discardBody(request.raw, maxIgnoredBody)
    refuseServiceWorker(request.headers)
    const isBytes = url === bytesPath
    // A browser may not run the bytes of items as scripts or styles.
    if (isBytes) refuseCodeDestination(request.headers)
    const redirect = mediaHost?.redirectUrl(request.raw, isBytes) ?? null
    if (redirect !== null) return reply.header('cache-control', redirectCaching).redirect(redirect, 308)
    return undefined
  })
}
