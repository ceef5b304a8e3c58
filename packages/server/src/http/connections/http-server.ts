import type { RequestListener, Server } from 'node:http'
import { Duplex } from 'node:stream'
import type { BaseLogger } from 'pino'
import { handleExpectations } from '../bodies/unread-bodies.ts'
import { isParserPause, parserUnsupported } from '../node-internals.ts'
import { createClientErrorHandler } from './client-errors.ts'
import { closeOnIdleTimeout } from './idle-connections.ts'
import { refusePipelining } from './pipelining.ts'
import { maxHeaders, refuseTunnels } from './require-http1.ts'
import { closeSlowReaders } from './slow-readers.ts'

// An import would load more: see core/node-http.ts.
const { createServer } = process.getBuiltinModule('node:http')

/** The limit for all headers of a request together, which the problem `headers-too-large` names. Bytes. */
export const maxHeaderSize = 16_384

/** The time for a client to send the headers of a request, a quarter of the idle timeout at most. Milliseconds. */
const longestHeaderTimeout = 15_000

/** The rate at which a client must read a response. Bytes per second. */
const minSendRate = 2_000

/**
 * Creates the server, which handles invalid requests, `Expect`, `CONNECT`, idle connections and slow readers itself. Timeouts apply to
 * headers and to idle time, never to a whole request (docs/interface.md O4).
 */
export function createHttpServer(
  listener: RequestListener,
  parts: {
    readonly settings: { readonly baseUrl: string; readonly idleTimeout: number }
    readonly log: BaseLogger
    /** Called for each connection that is closed because its client reads too slowly. */
    readonly onSlowReader: () => void
  },
): Server {
  requirePausableParser()
  const { settings, log, onSlowReader } = parts
  const { baseUrl, idleTimeout } = settings
  const headersTimeout = Math.min(longestHeaderTimeout, Math.ceil(idleTimeout / 4))
  const server = createServer(
    {
      maxHeaderSize,
      // Node's own response to a missing Host is no problem document (P1).
      requireHostHeader: false,
      headersTimeout,
      requestTimeout: 0,
      keepAliveTimeout: idleTimeout,
      // The stream of a body that cannot come costs a tenth of a small response.
      optimizeEmptyRequests: true,
      connectionsCheckingInterval: Math.min(headersTimeout, 1_000),
    },
    listener,
  )
  // Node drops further headers without an error, so one more than allowed is read and refused.
  server.maxHeadersCount = maxHeaders + 1
  server.on('clientError', createClientErrorHandler(baseUrl, log))
  refusePipelining(server)
  handleExpectations(server)
  refuseTunnels(server, { baseUrl, log })
  closeOnIdleTimeout(server, idleTimeout)
  closeSlowReaders(server, { minSendRate, idleTimeout }, onSlowReader)
  return server.setTimeout(idleTimeout)
}

const twoRequests = Buffer.from('GET / HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\n\r\n')

/** Throws UnsupportedNodeError where refusePipelining cannot stop the parser of this version of Node. */
function requirePausableParser(): void {
  const server = createServer({ requireHostHeader: false })
  refusePipelining(server)
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
