import { createServer, type RequestListener, type Server } from 'node:http'
import { requirePausableParser } from './parser-check.ts'
import { boundPipelining } from './pipelining.ts'
import { maxHeaders } from './require-http1.ts'

/** All headers of a request together, as problems.ts tells it. Bytes. */
export const maxHeaderSize = 16_384

/** The server under the framework. Deadlines are for headers and for silence, never for a whole request (docs/interface.md O4). */
export function createHttpServer(
  deadlines: { readonly headerTimeout: number; readonly idleTimeout: number },
  listener: RequestListener,
): Server {
  requirePausableParser()
  const server = createServer(
    {
      maxHeaderSize,
      // A missing Host is answered with a problem of ours.
      requireHostHeader: false,
      headersTimeout: deadlines.headerTimeout,
      requestTimeout: 0,
      keepAliveTimeout: deadlines.idleTimeout,
      connectionsCheckingInterval: Math.min(deadlines.headerTimeout, 1_000),
    },
    listener,
  )
  // One more than are accepted, so that too many are noticed: Node drops the rest.
  server.maxHeadersCount = maxHeaders + 1
  boundPipelining(server)
  return server.setTimeout(deadlines.idleTimeout)
}
