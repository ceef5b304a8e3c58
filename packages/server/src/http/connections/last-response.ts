import type { Socket } from 'node:net'
import type { Fault } from '../../core/fault.ts'
import { STATUS_CODES } from '../../core/node-http.ts'
import { problemResponse } from '../problems/problem-response.ts'

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
