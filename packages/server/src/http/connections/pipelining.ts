import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { ignoreUpgrade, interceptRequests, pauseParsing } from '../node-internals.ts'
import { createLingeringClose } from './last-response.ts'

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
