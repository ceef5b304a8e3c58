import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import type { IncomingMessage, RequestListener, Server, ServerResponse } from 'node:http'
import { createServer as createListener, type Server as Listener, type Socket } from 'node:net'
import type { BaseLogger } from 'pino'
import { Fault } from '../core/faults.ts'
import { handleExpectations, isDiscarding } from './bodies.ts'
import {
  closeAfter,
  closeOnIdleTimeout,
  closeSlowReaders,
  createLingeringClose,
  currentResponse,
  isParserPause,
  refusePipelining,
  requirePausableParser,
  serializeProblem,
} from './connections.ts'
import type { CorsPolicy } from './cors.ts'
import { maxHeaders, supportedVersions } from './headers.ts'
import type { Metrics } from './metrics.ts'
import { type CodeAndDetail, incompleteBody } from './problems.ts'
import { limitUnreadBytes } from './unread-bytes.ts'

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
    readonly metrics: Pick<Metrics, 'slowReaders' | 'unreadClosed' | 'watchUnreadBytes'>
    /** The limit for bytes of responses that clients have not read. Bytes. */
    readonly responseMemory: number
    readonly corsHeaders: CorsPolicy
  },
): Server {
  requirePausableParser()
  const { settings, log, metrics, responseMemory, corsHeaders } = parts
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
  server.on('clientError', createClientErrorHandler(baseUrl, log, corsHeaders))
  refusePipelining(server)
  handleExpectations(server)
  refuseTunnels(server, { baseUrl, log })
  closeOnIdleTimeout(server, idleTimeout)
  closeSlowReaders(server, { minSendRate, idleTimeout }, () => metrics.slowReaders.inc())
  metrics.watchUnreadBytes(
    limitUnreadBytes(server, { limit: responseMemory, onClose: () => metrics.unreadClosed.inc() }),
  )
  return server.setTimeout(idleTimeout)
}

/** Refuses CONNECT: the service is no proxy. Node ignores upgrades, as RFC 9110, section 7.8, allows. */
function refuseTunnels(
  server: Server,
  { baseUrl, log }: { readonly baseUrl: string; readonly log: Pick<BaseLogger, 'info'> },
): void {
  const sendAndClose = createLingeringClose()
  server.on('connect', (_request: IncomingMessage, socket: Socket) => {
    const requestId = randomUUID()
    const fault = new Fault('method-unsupported', 'The service is no proxy and does not support CONNECT.')
    const { status, bytes } = serializeProblem(fault, baseUrl, requestId)
    log.info({ requestId, status, reason: 'CONNECT' }, 'refused a request')
    sendAndClose(socket, bytes)
  })
}

const notHttp: CodeAndDetail = ['request-malformed', 'The request is not valid HTTP.']

/** RFC 9112, section 2.2, allows to refuse a line that ends with LF alone. */
const bareLineEnd: CodeAndDetail = ['request-malformed', 'A line of the request does not end with CRLF.']

/** Node.js reports it as an invalid version if the line is the first one. */
const isBareLineEnd = (error: Error): boolean =>
  'reason' in error && String(error.reason).startsWith('Expected CRLF after version')

/** The bytes that the parser refused with this error. */
const refusedBytes = (error: Error): Buffer =>
  'rawPacket' in error && Buffer.isBuffer(error.rawPacket) ? error.rawPacket : Buffer.alloc(0)

/** Of a head that is too large, so many further bytes are read, and for so long (milliseconds), to find its origin. */
const longestRest = 65_536
const longestRestTime = 1_000

/** The part of a head that the parser refused, and what follows it: Node reports the error again with each further read. */
class RefusedHead {
  #text = ''
  #isEnded = false
  readonly #timer: NodeJS.Timeout
  readonly #onEnd: (origin: string | null) => void

  /** Calls `onEnd` once, with the origin that the head names, so that a page of it can read the problem. */
  constructor(onEnd: (origin: string | null) => void) {
    this.#onEnd = onEnd
    this.#timer = setTimeout(() => this.end(), longestRestTime)
  }

  add(bytes: Buffer): void {
    if (this.#isEnded) return
    const before = Math.max(this.#text.length - 3, 0)
    this.#text += bytes.toString('latin1')
    if (this.#text.includes('\r\n\r\n', before) || this.#text.length >= longestRest) this.end()
  }

  end(): void {
    if (this.#isEnded) return
    this.#isEnded = true
    clearTimeout(this.#timer)
    const end = this.#text.indexOf('\r\n\r\n')
    const head = end < 0 ? this.#text : this.#text.slice(0, end + 2)
    this.#text = ''
    const [, origin = null] = /\r\norigin:[ \t]*([!-~]{1,255})[ \t]*\r\n/i.exec(head) ?? []
    this.#onEnd(origin)
  }
}

const parserFaults: Readonly<Record<string, CodeAndDetail>> = {
  HPE_HEADER_OVERFLOW: ['headers-too-large', 'The headers of the request exceed 16 KiB.'],
  HPE_INVALID_VERSION: ['http-version-unsupported', supportedVersions],
  // The preface of HTTP/2.
  HPE_PAUSED_H2_UPGRADE: ['http-version-unsupported', supportedVersions],
  ERR_HTTP_REQUEST_TIMEOUT: ['request-timeout', 'The headers of the request took too long to arrive.'],
}

/** Responds to bytes that are no valid request, then closes the connection, whose framing is lost (RFC 9112). */
function createClientErrorHandler(baseUrl: string, log: BaseLogger, corsHeaders: CorsPolicy) {
  const closing = new WeakSet<ServerResponse>()
  /** Connections whose response waits for the rest of a head, or is sent. */
  const heads = new WeakMap<Socket, RefusedHead>()
  const sendAndClose = createLingeringClose()

  return (error: Error & { code?: string }, socket: Socket) => {
    if (isParserPause(error)) return
    const refused = heads.get(socket)
    if (refused !== undefined) {
      refused.add(refusedBytes(error))
      return
    }
    // The request has its response and its line in the log. Most clients close the connection instead of sending the rest of the body.
    if (isDiscarding(socket)) {
      socket.destroy()
      return
    }
    const response = currentResponse(socket)
    if (response?.req.complete && error.code !== 'ECONNRESET' && socket.writable) {
      // The client would take a problem for the response to its previous request, so none is sent. Each further read reports the error.
      if (!closing.has(response)) closeAfter(response, socket)
      closing.add(response)
      return
    }
    // A problem would become part of the body of a response that has begun.
    if (error.code === 'ECONNRESET' || !socket.writable || response?.headersSent) {
      socket.destroy()
      return
    }
    const endedEarly = error.code === 'HPE_INVALID_EOF_STATE' && response !== null
    const [code, detail] = endedEarly
      ? incompleteBody
      : isBareLineEnd(error)
        ? bareLineEnd
        : (parserFaults[error.code ?? ''] ?? notHttp)
    const head = new RefusedHead((origin) => {
      // The client has closed the connection in the meantime.
      if (!socket.writable) {
        socket.destroy()
        return
      }
      const requestId = randomUUID()
      const cors = corsHeaders(response?.req.headers ?? (origin === null ? {} : { origin }))
      const { status, bytes } = serializeProblem(new Fault(code, detail), baseUrl, requestId, cors)
      log.info({ requestId, status, reason: error.code }, 'refused an invalid request')
      sendAndClose(socket, bytes)
    })
    heads.set(socket, head)
    head.add(refusedBytes(error))
    if (response !== null || error.code !== 'HPE_HEADER_OVERFLOW') head.end()
  }
}

/** A bound port that accepts connections before the server exists. */
export interface BoundPort {
  readonly port: number
  /** Hands the port and the waiting connections over to a server. */
  serve(server: Server): Promise<void>
  /** Stops accepting connections; resolves when those of the server are closed. */
  close(): Promise<void>
}

/**
 * Binds a port, a free one for 0. It is bound before the server exists, because the server needs the base URL, which may
 * contain the port. Rejects where the address is in use.
 */
export async function bindPort(host: string, port: number): Promise<BoundPort> {
  const waiting: Socket[] = []
  const listener = createListener({ pauseOnConnect: true }, (socket) => waiting.push(socket))
  listener.listen({ host, port })
  await once(listener, 'listening')
  const address = listener.address()
  let open: Listener | null = listener
  return {
    port: typeof address === 'object' && address !== null ? address.port : port,
    async serve(server) {
      open = server
      server.listen(listener)
      await once(server, 'listening')
      for (const socket of waiting.splice(0)) {
        server.emit('connection', socket)
        socket.resume()
      }
    },
    async close() {
      for (const socket of waiting.splice(0)) socket.destroy()
      const closing = open
      open = null
      await new Promise<void>((resolve) => (closing ? closing.close(() => resolve()) : resolve()))
    },
  }
}
