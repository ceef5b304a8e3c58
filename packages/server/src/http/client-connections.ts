import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import { Duplex } from 'node:stream'
import { type Fault, UnsupportedNodeError } from '../core/faults.ts'
import { STATUS_CODES } from '../core/node-http.ts'
import { problemResponse } from './problems.ts'

// An import would load more: see core/node-http.ts.
const { createServer } = process.getBuiltinModule('node:http')

/** Learns when a connection is in use. */
export interface ConnectionWatcher {
  requestBegan(): void
  responseEnded(): void
}

/** A connection of a server that refuses pipelining. */
interface Connection {
  /** Only until it has ended: it keeps the headers of its request, which an idle connection needs no longer. */
  response: ServerResponse | null
  /** Requests that were started. */
  requests: number
  watcher: ConnectionWatcher | null
}

const connections = new WeakMap<Socket, Connection>()

/** Calls the watcher for each further request of the connection. */
export function watchConnection(socket: Socket, watcher: ConnectionWatcher): void {
  const connection = connections.get(socket)
  if (connection !== undefined) connection.watcher = watcher
}

/** `response` is null for a request without one. */
function beginResponse(connection: Connection, response: ServerResponse | null): void {
  connection.requests += 1
  connection.response = response
  if (response === null) return
  connection.watcher?.requestBegan()
  response.on('close', endResponse)
}

/** One function for all responses, because a function for each of them is one more object. */
function endResponse(this: ServerResponse): void {
  const connection = connections.get(this.req.socket)
  if (connection?.response !== this) return
  connection.response = null
  connection.watcher?.responseEnded()
}

/** The unfinished response of a connection of a server that refuses pipelining; null where there is none. */
export function currentResponse(socket: Socket): ServerResponse | null {
  const connection = connections.get(socket)
  return connection === undefined ? null : unfinished(connection)
}

const unfinished = ({ response }: Connection): ServerResponse | null =>
  response === null || response.writableFinished || response.destroyed ? null : response

/**
 * Calls `work` after the next read of the connections, unless it has brought a request on this one. After a time in which the process did not
 * run, timers are late, and what clients have sent in time is still unread.
 */
export function unlessRequestArrives(socket: Socket, work: () => void): void {
  const connection = connections.get(socket)
  const requests = connection?.requests
  setImmediate(() => {
    if (connection?.requests === requests) work()
  })
}

/** The same, unless any bytes of this connection were read or sent. */
function unlessBytesMove(socket: Socket, work: () => void): void {
  const { bytesRead } = socket
  const sent = sentBytes(socket)
  setImmediate(() => {
    if (socket.bytesRead === bytesRead && sentBytes(socket) === sent) work()
  })
}

const closeSocket = createLingeringClose()
const nothing = Buffer.alloc(0)

/** Closes a connection after its current response, and discards what the client sends in the meantime. */
export function closeAfter(response: ServerResponse, socket: Socket): void {
  response.shouldKeepAlive = false
  let isClosing = false
  // Node calls it after a response that says `Connection: close`, and resets the connection if there are unread bytes.
  socket.destroySoon = () => {
    if (!isClosing) closeSocket(socket, nothing)
    isClosing = true
  }
  response.once('close', () => socket.destroySoon())
}

/**
 * Handles one request of a connection at a time. The connection is closed after the response to a request that is followed by another
 * one before the response has ended (docs/interface.md N1): nothing more is parsed, and the connection is not read in the meantime.
 */
export function refusePipelining(server: Server): void {
  /** The response to the request that is being started. */
  let started: ServerResponse | null = null
  server.prependListener('request', (_request: IncomingMessage, response: ServerResponse) => {
    started = response
  })
  server.on('connection', (socket: Socket) => {
    const connection: Connection = { response: null, requests: 0, watcher: null }
    connections.set(socket, connection)
    interceptRequests(socket, {
      accepts(request) {
        // RFC 9112, section 9.6: process no request after the response that closes the connection.
        if (!socket.writable) return false
        const response = unfinished(connection)
        // A CONNECT has no response.
        started = null
        if (response === null) return true
        ignoreUpgrade(request)
        socket.pause()
        closeAfter(response, socket)
        return false
      },
      began: () => beginResponse(connection, started),
    })
  })
}

const twoRequests = Buffer.from('GET / HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\n\r\n')

/** Throws UnsupportedNodeError where refusePipelining cannot stop the parser of this version of Node. */
export function requirePausableParser(): void {
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

// The private fields of Node, which no other file uses, with the reason for each.

/** The parser of a connection. */
interface Parser {
  onIncoming(request: IncomingMessage, keepAlive: boolean): number
}

/** The llhttp error with which the parser stops after the headers of a request. */
const pauseParsing = 21
const pausedCode = 'HPE_PAUSED'

/** Whether an error reports that the parser has stopped. */
export const isParserPause = (error: { readonly code?: string }): boolean => error.code === pausedCode

/**
 * Calls `accepts` for each request that Node's parser finds on a connection, and `began` after Node has begun to handle it. If it is not accepted,
 * nothing more of the connection is parsed: llhttp takes the result as its error code. Without it, Node parses all requests
 * of one read, and 64 kB can hold 3,000 of them. Throws UnsupportedNodeError where Node has another parser.
 */
function interceptRequests(
  socket: Socket,
  { accepts, began }: { readonly accepts: (request: IncomingMessage) => boolean; readonly began: () => void },
): void {
  const parser = parserOf(socket)
  const { onIncoming } = parser
  parser.onIncoming = (request, keepAlive) => {
    if (!accepts(request)) return pauseParsing
    const result = onIncoming(request, keepAlive)
    began()
    return result
  }
}

function parserOf(socket: Socket): Parser {
  if ('parser' in socket && isParser(socket.parser)) return socket.parser
  throw parserUnsupported()
}

const parserUnsupported = () => new UnsupportedNodeError('has an HTTP parser that cannot be paused')

const isParser = (value: unknown): value is Parser =>
  typeof value === 'object' &&
  value !== null &&
  'onIncoming' in value &&
  typeof value.onIncoming === 'function'

/** Clears the flag of a CONNECT or of a request with `Upgrade`: otherwise Node detaches the parser from the connection. */
function ignoreUpgrade(request: IncomingMessage): void {
  if ('upgrade' in request) request.upgrade = false
}

/**
 * Closes connections on which the client has been silent for the idle timeout, in milliseconds (docs/interface.md O4,
 * U12). Time in which the client waits for the service, for a slow disk for example, does not count.
 */
export function closeOnIdleTimeout(server: Server, idleTimeout: number): void {
  server.setTimeout(idleTimeout)
  server.on('connection', (socket: Socket) => {
    socket.setTimeout = keepTimer
  })
  server.on('timeout', (socket: Socket) => {
    const response = currentResponse(socket)
    if (response !== null && isServersTurn(response)) restartIdleTimer(socket)
    else unlessBytesMove(socket, () => socket.destroy())
  })
}

/** The client is not idle while it waits for the service. */
export function restartIdleTimer(socket: Socket): void {
  if (socket.timeout !== undefined) setSocketTimeout.call(socket, socket.timeout)
}

const setSocketTimeout = Socket.prototype.setTimeout

/** What Node adds to the idle timeout between two requests, so that the client closes the connection first. Milliseconds. */
export const keepAliveTimeoutBuffer = 1_000

/**
 * Replaces `socket.setTimeout`. Node calls it at the start of each request but the first, and after each response. Reads and writes restart
 * the existing timer, so it is kept if it has the requested duration, or up to `keepAliveTimeoutBuffer` more.
 */
function keepTimer(this: Socket, milliseconds: number, callback?: () => void): Socket {
  const later = (this.timeout ?? 0) - milliseconds
  if (callback === undefined && later >= 0 && later <= keepAliveTimeoutBuffer) return this
  return setSocketTimeout.call(this, milliseconds, callback)
}

/** Whether the server, not the client, must act: the request is complete, has unread bytes, or is paused. */
const isServersTurn = ({ headersSent, req }: ServerResponse): boolean =>
  !headersSent && (req.complete || req.readableLength > 0 || req.socket.isPaused())

/**
 * Tracks connections that have not sent a request, such as those that browsers open in advance. `closeUnused` closes
 * them and all idle ones, so that they do not delay a stop: Node's `closeIdleConnections` leaves the former open.
 */
export function trackUnusedConnections(server: Server): { closeUnused(): void } {
  const open = new Set<Socket>()
  server.on('connection', (socket: Socket) => {
    open.add(socket)
    socket.once('close', () => open.delete(socket))
  })
  return {
    closeUnused() {
      for (const socket of open) if (connections.get(socket)?.requests === 0) socket.destroy()
      server.closeIdleConnections()
    },
  }
}

/** The longest time between two checks of a connection. Milliseconds. */
const longestInterval = 5_000

/** When a measurement began, and `sentBytes` at that time. */
interface Observation {
  readonly since: number
  readonly sent: number
}

/**
 * Closes connections whose clients receive fewer bytes per second than `minSendRate` while more are ready, measured over
 * the idle timeout (docs/interface.md N6). Time in which the service has nothing to send does not count.
 */
export function closeSlowReaders(
  server: Server,
  { minSendRate, idleTimeout }: { readonly minSendRate: number; readonly idleTimeout: number },
  onClose: () => void,
): void {
  const open = new Set<Socket>()
  let observations = new WeakMap<Socket, Observation>()

  function measure(socket: Socket, now: number): void {
    // All bytes were sent, so a new measurement begins.
    if (socket.writableLength === 0) {
      observations.delete(socket)
      return
    }
    const sent = sentBytes(socket)
    const before = observations.get(socket)
    if (before !== undefined && now - before.since < idleTimeout) return
    observations.set(socket, { since: now, sent })
    if (before === undefined || ((sent - before.sent) * 1_000) / (now - before.since) >= minSendRate) return
    onClose()
    socket.destroy()
  }

  server.on('connection', (socket: Socket) => {
    open.add(socket)
    socket.once('close', () => open.delete(socket))
  })
  const interval = Math.min(longestInterval, idleTimeout / 4)
  let last = performance.now()
  const timer = setInterval(() => {
    const now = performance.now()
    // A process that did not run has sent nothing.
    if (now - last > 2 * interval) observations = new WeakMap()
    last = now
    for (const socket of open) measure(socket, now)
  }, interval)
  timer.unref()
  server.once('close', () => clearInterval(timer))
}

/**
 * The bytes of a connection that the kernel has accepted. `socket.bytesWritten` includes bytes that are still queued in the
 * process; only Node's internal handle has the length of that queue.
 */
export function sentBytes(socket: Socket): number {
  const handle = '_handle' in socket ? socket._handle : null
  if (typeof handle !== 'object' || handle === null) return 0
  const written = 'bytesWritten' in handle ? Number(handle.bytesWritten) : 0
  const queued = 'writeQueueSize' in handle ? Number(handle.writeQueueSize) : 0
  return written - queued
}

/** Serializes a problem as a complete response that closes the connection, for connections without a ServerResponse. */
export function serializeProblem(
  fault: Fault,
  baseUrl: string,
  requestId: string,
  more: Readonly<Record<string, string>> = {},
): { readonly status: number; readonly bytes: Buffer } {
  const { status, headers, body } = problemResponse(fault, baseUrl, requestId)
  return serializeResponse(status, { ...more, ...headers }, body)
}

/** A complete response that closes the connection. */
export function serializeResponse(
  status: number,
  headers: Readonly<Record<string, string>>,
  body: Uint8Array,
): { readonly status: number; readonly bytes: Buffer } {
  const head = Object.entries({ connection: 'close', ...headers })
    .map(([name, value]) => `${name}: ${value}\r\n`)
    .join('')
  return {
    status,
    bytes: Buffer.concat([Buffer.from(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${head}\r\n`), body]),
  }
}

/** How long a client may take to read the last response. Milliseconds. */
const lingerTime = 1_000

/** How many connections may linger at once; further ones are closed without a response. */
const maxLingering = 100

/** Sends the last bytes of a connection and closes it. */
type LingeringClose = (socket: Socket, bytes: Buffer) => void

/**
 * Reads and discards what the client sends until the connection is closed: closing a socket with unread bytes resets it,
 * and the client loses the response.
 */
export function createLingeringClose(): LingeringClose {
  let lingering = 0
  return (socket, bytes) => {
    socket.on('error', () => undefined)
    if (lingering >= maxLingering) {
      socket.destroy()
      return
    }
    lingering += 1
    const timer = setTimeout(() => socket.destroy(), lingerTime)
    socket.once('close', () => {
      lingering -= 1
      clearTimeout(timer)
    })
    socket.once('end', () => socket.destroy())
    socket.resume()
    socket.end(bytes)
  }
}

/** The head of a response as Node has formatted it; null before `writeHead`. */
export function formattedHead(response: ServerResponse): string | null {
  const head = '_header' in response ? response._header : null
  return typeof head === 'string' ? head : null
}

/** Marks the head as sent. Node only checks that `_header` is not empty. */
export function markHeadSent(response: ServerResponse): void {
  if (!hasHead(response)) throw new UnsupportedNodeError('has responses whose head cannot be marked as sent')
  response._header = 'sent'
  response._headerSent = true
}

const hasHead = (
  response: ServerResponse,
): response is ServerResponse & { _header: string | null; _headerSent: boolean } =>
  '_header' in response && '_headerSent' in response
