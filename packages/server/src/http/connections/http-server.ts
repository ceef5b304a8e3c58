import { createServer, type RequestListener, type Server } from 'node:http'
import { Duplex } from 'node:stream'
import { isParserPause, limitPipelining, parserUnsupported } from './pipelining.ts'
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
  limitPipelining(server)
  return server.setTimeout(deadlines.idleTimeout)
}

const twoRequests = Buffer.from('GET / HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\n\r\n')

/** Throws UnsupportedNodeError where the parser cannot be paused: at the start, not at the first connection. */
function requirePausableParser(): void {
  const server = createServer({ requireHostHeader: false })
  limitPipelining(server)
  let isPaused = false
  server.on('clientError', (error) => {
    isPaused = 'code' in error && isParserPause({ code: String(error.code) })
  })
  const connection = new Duplex({ read: () => undefined, write: (_chunk, _encoding, done) => done() })
  server.emit('connection', connection)
  for (const parse of connection.listeners('data')) parse.call(connection, twoRequests)
  connection.destroy()
  if (!isPaused) throw parserUnsupported()
}
