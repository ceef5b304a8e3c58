import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Fault } from '../core/faults.ts'
import { STATUS_CODES } from '../core/node-http.ts'
import { ignoreUpgrade, interceptRequests, pauseParsing } from './node-internals.ts'
import { problemResponse } from './problems.ts'

/** A connection, with its last response. */
interface Connection {
  response: ServerResponse | null
}

const connections = new WeakMap<Socket, Connection>()

/** Only until the response has ended: it keeps the headers of its request, which an idle connection needs no longer. */
function remember(connection: Connection, response: ServerResponse | null): void {
  connection.response = response
  response?.once('finish', () => {
    if (connection.response === response) connection.response = null
  })
}

/** The unfinished response of a connection of a server that refuses pipelining; null where there is none. */
export function currentResponse(socket: Socket): ServerResponse | null {
  const connection = connections.get(socket)
  return connection === undefined ? null : unfinished(connection)
}

const unfinished = ({ response }: Connection): ServerResponse | null =>
  response === null || response.writableFinished || response.destroyed ? null : response

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
    const connection: Connection = { response: null }
    connections.set(socket, connection)
    interceptRequests(socket, (request, start) => {
      // RFC 9112, section 9.6: process no request after the response that closes the connection.
      if (!socket.writable) return pauseParsing
      const response = unfinished(connection)
      if (response === null) {
        // A CONNECT has no response.
        started = null
        const result = start()
        remember(connection, started)
        return result
      }
      ignoreUpgrade(request)
      socket.pause()
      closeAfter(response, socket)
      return pauseParsing
    })
  })
}

/** Serializes a problem as a complete response that closes the connection, for connections without a ServerResponse. */
export function serializeProblem(
  fault: Fault,
  baseUrl: string,
  requestId: string,
): { readonly status: number; readonly bytes: Buffer } {
  const { status, headers, body } = problemResponse(fault, baseUrl, requestId)
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
export type LingeringClose = (socket: Socket, bytes: Buffer) => void

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
