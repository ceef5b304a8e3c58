import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { UnsupportedNodeError } from '../core/processes.ts'

// All private fields of Node that the service uses, with the measurement or the reason that needs them.

/** The parser of a connection. */
interface Parser {
  onIncoming(request: IncomingMessage, keepAlive: boolean): number
}

/** The llhttp error with which the parser stops after the headers of a request. */
export const pauseParsing = 21
const pausedCode = 'HPE_PAUSED'

/** Whether an error reports that the parser has stopped. */
export const isParserPause = (error: { readonly code?: string }): boolean => error.code === pausedCode

/**
 * Calls `intercept` for each request that Node's parser finds on a connection. `start` handles the request; with `pauseParsing` as the
 * result nothing more of the connection is parsed: llhttp takes the result as its error code. Without it, Node parses all requests
 * of one read, and 64 kB can hold 3,000 of them. Throws UnsupportedNodeError where Node has another parser.
 */
export function interceptRequests(
  socket: Socket,
  intercept: (request: IncomingMessage, start: () => number) => number,
): void {
  const parser = parserOf(socket)
  const { onIncoming } = parser
  parser.onIncoming = (request, keepAlive) => intercept(request, () => onIncoming(request, keepAlive))
}

function parserOf(socket: Socket): Parser {
  if ('parser' in socket && isParser(socket.parser)) return socket.parser
  throw parserUnsupported()
}

export const parserUnsupported = () => new UnsupportedNodeError('has an HTTP parser that cannot be paused')

const isParser = (value: unknown): value is Parser =>
  typeof value === 'object' &&
  value !== null &&
  'onIncoming' in value &&
  typeof value.onIncoming === 'function'

/** Clears the flag of a CONNECT or of a request with `Upgrade`: otherwise Node detaches the parser from the connection. */
export function ignoreUpgrade(request: IncomingMessage): void {
  if ('upgrade' in request) request.upgrade = false
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

/** The head of a response as Node has formatted it; null before `writeHead`. */
export function formattedHead(response: ServerResponse): string | null {
  const head = '_header' in response ? response._header : null
  return typeof head === 'string' ? head : null
}

/** Marks the head as sent. Node only checks that `_header` is not empty. */
export const markHeadSent = (response: ServerResponse): void =>
  void Object.assign(response, { _header: 'sent', _headerSent: true })
