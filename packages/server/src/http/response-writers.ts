import type { IncomingMessage, ServerResponse } from 'node:http'
import { hasHeadRoom, headRoom } from '../core/bytes.ts'
import { formattedHead, markHeadSent } from './client-connections.ts'
import { leaveOut } from './unread-bytes.ts'

/**
 * Whether the head of a response can be written without Node: HTTP/1.1 with keep-alive, on the connection's turn, and without the headers
 * of one request only (docs/interface.md O15). Node adds the same lines to each such response.
 */
const canWriteHead = (request: IncomingMessage, response: ServerResponse): boolean =>
  response.shouldKeepAlive &&
  request.httpVersionMinor === 1 &&
  response.socket?.writable === true &&
  !response.hasHeader('x-request-id')

/** The head that is in the memory in front of bytes. */
interface WrittenHead {
  /** The second of its `Date`. */
  second: number
  /** Head and bytes. */
  whole: Uint8Array
  /** The number of connections that have not accepted all of it. */
  unsent: number
}

/**
 * Sends a 200 response to a GET request. `head` must not change between two calls with the same `bytes`, which must have
 * `headRoom` in front of them.
 */
export type WholeWriter = (
  request: IncomingMessage,
  response: ServerResponse,
  head: string[],
  bytes: Uint8Array,
) => void

/**
 * Node formats every header of every response, and joins head and body for each, which takes as long as all else that is done
 * for a small file. Here Node formats the head once a second, because of its `Date`. The head is stored in front of the bytes,
 * and one write sends both.
 */
export function createWholeWriter(now: () => number = Date.now): WholeWriter {
  const written = new WeakMap<Uint8Array, WrittenHead>()

  /** Stores the head that Node has formatted for this response. Null if it has no room. */
  function store(response: ServerResponse, bytes: Uint8Array, second: number): WrittenHead | null {
    if (!hasHeadRoom(bytes)) return null
    const text = formattedHead(response)
    if (text === null || text.length > headRoom) return null
    const start = bytes.byteOffset - text.length
    const whole = Buffer.from(bytes.buffer, start, text.length + bytes.length)
    whole.write(text, 'latin1')
    const head = written.get(bytes) ?? { second, whole, unsent: 0 }
    Object.assign(head, { second, whole })
    written.set(bytes, head)
    return head
  }

  function send(response: ServerResponse, head: WrittenHead): void {
    markHeadSent(response)
    const { socket } = response
    socket?.write(head.whole)
    if (socket?.writableLength) {
      leaveOut(response, socket, head.whole.length)
      head.unsent += 1
      response.once('close', () => {
        head.unsent -= 1
      })
    }
    response.end()
  }

  return (request, response, head, bytes) => {
    const canReuse = canWriteHead(request, response)
    const second = Math.floor(now() / 1000)
    const known = canReuse ? written.get(bytes) : undefined
    if (known?.second === second) return send(response, known)
    response.writeHead(200, head)
    // The memory of a head that is being sent must not change.
    const stored = canReuse && !known?.unsent ? store(response, bytes, second) : null
    if (stored) return send(response, stored)
    endWithShared(response, bytes)
  }
}

/** Ends a response with bytes that many responses share, which do not count as unread (docs/interface.md N6). */
export function endWithShared(response: ServerResponse, bytes: Uint8Array): void {
  response.end(bytes)
  if (response.socket !== null) leaveOut(response, response.socket, bytes.length)
}

/** Sends a 200 response with a text of ASCII characters to a GET request. `head` has alternating names and valid values. */
export type TextWriter = (
  request: IncomingMessage,
  response: ServerResponse,
  head: readonly string[],
  text: string,
) => void

/**
 * Node checks and formats each header of every response. Here it formats only the lines that it adds itself, once a second, because of
 * its `Date`.
 */
export function createTextWriter(now: () => number = Date.now): TextWriter {
  let second = 0
  /** The lines after those of `head`. */
  let ownLines: string | null = null

  return (request, response, head, text) => {
    const { socket } = response
    if (!canWriteHead(request, response) || socket === null) {
      response.writeHead(200, [...head])
      response.end(text, 'latin1')
      return
    }
    const current = Math.floor(now() / 1000)
    const lines = linesOf(head)
    if (ownLines !== null && second === current) {
      markHeadSent(response)
      socket.write(lines + ownLines + text, 'latin1')
      response.end()
      return
    }
    response.writeHead(200, [...head])
    const whole = formattedHead(response)
    second = current
    ownLines = whole?.startsWith(lines) ? whole.slice(lines.length) : null
    response.end(text, 'latin1')
  }
}

function linesOf(head: readonly string[]): string {
  let lines = 'HTTP/1.1 200 OK\r\n'
  for (let index = 1; index < head.length; index += 2) lines += `${head[index - 1]}: ${head[index]}\r\n`
  return lines
}
