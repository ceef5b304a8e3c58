import { randomUUID } from 'node:crypto'
import type { RequestListener } from 'node:http'
import fastify, {
  type FastifyBaseLogger,
  type FastifyInstance,
  type FastifyRequest,
  LogController,
} from 'fastify'
import type { HttpSettings } from './app-parts.ts'
import { discardBody } from './bodies/unread-bodies.ts'
import { maxIgnoredBody } from './check-requests.ts'
import { createClientErrorHandler } from './connections/client-errors.ts'
import { createHttpServer, maxHeaderSize } from './connections/http-server.ts'
import type { CorsPolicy } from './headers/cors.ts'
import type { RequestLimits } from './limits/request-limits.ts'
import { loggedRequest, type RequestLogger } from './metrics/request-log.ts'
import { createSerializer } from './openapi/create-serializer.ts'
import type { createErrorHandler } from './problems/error-handler.ts'

// Fastify loads its compilers for JSON schemas only without these. Loading them and compiling the schemas took a fifth of the start.
const buildSerializer = () => createSerializer
const buildValidator = () => {
  throw new Error('requests are validated by the operations, not by Fastify')
}

/** Creates the Fastify instance, without routes. `createListener` returns the server's listener, which calls the framework for most requests. */
export function createFramework(parts: {
  readonly settings: HttpSettings
  readonly log: FastifyBaseLogger
  readonly createListener: (framework: RequestListener) => RequestListener
  readonly logRequest: RequestLogger
  readonly corsHeaders: CorsPolicy
  readonly limits: RequestLimits
  readonly handleError: ReturnType<typeof createErrorHandler>
}): FastifyInstance {
  const { settings, log, createListener, logRequest, corsHeaders, limits, handleError } = parts
  const app: FastifyInstance = fastify({
    serverFactory: (framework) => createHttpServer(settings, createListener(framework)),
    schemaController: { compilersFactory: { buildValidator, buildSerializer } },
    loggerInstance: log,
    logController: new LogController({ disableRequestLogging: true, requestIdLogLabel: 'requestId' }),
    genReqId: () => randomUUID(),
    forceCloseConnections: 'idle',
    // Requests on open connections get their usual response while the service stops; /readyz responds with 503.
    return503OnClosing: false,
    // Paths are limited by the size of the headers.
    routerOptions: { maxParamLength: maxHeaderSize },
    clientErrorHandler: createClientErrorHandler({
      baseUrl: settings.baseUrl,
      log,
      newRequestId: randomUUID,
    }),
    // No hooks run for a path that cannot be decoded.
    frameworkErrors: (error, request, reply) => {
      logRequest(loggedRequest(request), reply.raw)
      reply.headers(corsHeaders(request.headers))
      handleError(limits.countAddress(request.raw) ?? error, request, reply)
    },
  })
  app.setErrorHandler(handleError)
  // Only uploads accept a body. All other routes read and discard one up to a limit.
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', async ({ raw }: FastifyRequest) => discardBody(raw, maxIgnoredBody))
  return app
}
