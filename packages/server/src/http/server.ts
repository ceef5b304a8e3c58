import { once } from 'node:events'
import type { IncomingMessage, RequestListener, Server } from 'node:http'
import { createServer as createListener, type Server as Listener, type Socket } from 'node:net'
import type { BaseLogger } from 'pino'
import { Fault } from '../core/faults.ts'
import { handleExpectations } from './bodies.ts'
import {
  closeOnIdleTimeout,
  closeSlowReaders,
  createLingeringClose,
  keepAliveTimeoutBuffer,
  refusePipelining,
  requirePausableParser,
} from './client-connections.ts'
import type { CorsPolicy } from './cors.ts'
import { maxHeaders } from './headers.ts'
import { refuseInvalidRequests } from './invalid-requests.ts'
import type { Metrics } from './metrics.ts'
import type { FaultSerializer } from './problems.ts'
import { newRequestId } from './request-ids.ts'
import type { UnreadBytes } from './unread-bytes.ts'

// An import would load more: see core/node-http.ts.
const { createServer } = process.getBuiltinModule('node:http')

/** The limit for all headers of a request together, which the problem `headers-too-large` names. Bytes. */
export const maxHeaderSize = 16_384

/** The time for a client to send the headers of a request, a quarter of the idle timeout at most. Milliseconds. */
const longestHeaderTimeout = 15_000

/** The rate at which a client must read a response. Bytes per second. */
const minSendRate = 2_000

const serializers = new WeakMap<Server, FaultSerializer>()

/** How a server of `createHttpServer` responds where there is no request. */
export function faultSerializerOf(server: Server): FaultSerializer {
  const found = serializers.get(server)
  if (found === undefined) throw new TypeError('this server is not one of createHttpServer')
  return found
}

/**
 * Creates the server, which handles invalid requests, `Expect`, `CONNECT`, idle connections and slow readers itself. Timeouts apply to
 * headers and to idle time, never to a whole request (docs/interface.md O4).
 */
export function createHttpServer(
  listener: RequestListener,
  parts: {
    readonly settings: { readonly idleTimeout: number }
    readonly log: BaseLogger
    readonly metrics: Pick<Metrics, 'slowReaders'>
    /** Those of all servers of the process. */
    readonly unread: UnreadBytes
    readonly corsHeaders: CorsPolicy
    readonly serializeFault: FaultSerializer
  },
): Server {
  requirePausableParser()
  const { settings, log, metrics, unread, corsHeaders, serializeFault } = parts
  const { idleTimeout } = settings
  const headersTimeout = Math.min(longestHeaderTimeout, Math.ceil(idleTimeout / 4))
  const server = createServer(
    {
      maxHeaderSize,
      // Node's own response to a missing Host is no problem document (P1).
      requireHostHeader: false,
      headersTimeout,
      requestTimeout: 0,
      keepAliveTimeout: idleTimeout,
      keepAliveTimeoutBuffer,
      // A body that cannot come needs no stream.
      optimizeEmptyRequests: true,
      connectionsCheckingInterval: Math.min(headersTimeout, 1_000),
    },
    listener,
  )
  serializers.set(server, serializeFault)
  // Node drops further headers without an error, so one more than allowed is read and refused.
  server.maxHeadersCount = maxHeaders + 1
  server.on('clientError', refuseInvalidRequests(serializeFault, log, corsHeaders))
  refusePipelining(server)
  handleExpectations(server)
  refuseTunnels(server, { serializeFault, log })
  closeOnIdleTimeout(server, idleTimeout)
  closeSlowReaders(server, { minSendRate, idleTimeout }, () => metrics.slowReaders.inc())
  unread.watch(server)
  return server
}

/** Refuses CONNECT: the service is no proxy. Node ignores upgrades, as RFC 9110, section 7.8, allows. */
function refuseTunnels(
  server: Server,
  {
    serializeFault,
    log,
  }: { readonly serializeFault: FaultSerializer; readonly log: Pick<BaseLogger, 'info'> },
): void {
  const sendAndClose = createLingeringClose()
  server.on('connect', (_request: IncomingMessage, socket: Socket) => {
    const requestId = newRequestId()
    const fault = new Fault('method-unsupported', 'The service is no proxy and does not support CONNECT.')
    const { status, bytes } = serializeFault(fault, requestId)
    log.info({ requestId, status, reason: 'CONNECT' }, 'refused a request')
    sendAndClose(socket, bytes)
  })
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
