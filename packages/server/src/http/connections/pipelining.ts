import type { IncomingMessage, Server } from 'node:http'
import type { Socket } from 'node:net'
import { ServerResponse } from '../../core/node-http.ts'
import { UnsupportedNodeError } from '../../core/version.ts'

// Node parses and starts all pipelined requests of one read at once; 64 kB can hold 3,000 of them. This module pauses
// the parser at each request that arrives before the previous response is finished (docs/interface.md N1). Node has no
// public API for that: llhttp takes the return value of the parser's `onIncoming` as its error code.

/** The limit for unparsed bytes of all connections together. A connection that exceeds it is closed after its response. */
const unparsedRoom = 16 * 1024 * 1024

/** The llhttp error with which it stops after the headers of a request; `resume` continues from there. */
const pauseParsing = 21
const pausedCode = 'HPE_PAUSED'

/** The number of pipelined requests of all connections that start in one event-loop tick. */
const startsPerTick = 8

/** Completes the request at which the parser was paused. Not `Buffer.alloc(0)`, which the parser takes for the end of the connection. */
const noBytes = Buffer.alloc(1).subarray(1)

interface Parser {
  onIncoming(request: IncomingMessage, keepAlive: boolean): number
  resume(): void
}

/** The pipelining state of a connection. */
interface PipelineState {
  /** The request that waits for the end of the previous response. */
  next: { readonly request: IncomingMessage; readonly keepAlive: boolean } | null
  /** Whether the parser has been paused and has not reported it yet. */
  isPausing: boolean
  unparsed: Buffer[]
  /** Whether the connection closes after the current response. */
  isClosing: boolean
}

/** Whether the error reports that the parser was paused. */
export const isParserPause = (error: { readonly code?: string }): boolean => error.code === pausedCode

/**
 * Starts one request of a connection at a time, in order, and a few of all connections in each event-loop tick. The next
 * request is parsed; further bytes stay unparsed, and the connection is not read.
 */
export function limitPipelining(server: Server): void {
  const states = new WeakMap<Socket, PipelineState>()
  let unparsedBytes = 0
  const schedule = createTickScheduler()

  function stateOf(socket: Socket): PipelineState {
    const known = states.get(socket)
    if (known) return known
    const state: PipelineState = { next: null, isPausing: false, unparsed: [], isClosing: false }
    states.set(socket, state)
    // Node resumes the socket at the end of a message and when a body is read.
    socket.on('resume', () => {
      if (state.next) stopReading(socket)
    })
    socket.once('close', () => dropUnparsed(state))
    return state
  }

  function dropUnparsed(state: PipelineState): void {
    for (const { length } of state.unparsed) unparsedBytes -= length
    state.unparsed = []
  }

  function keepUnparsed(
    state: PipelineState,
    socket: Socket,
    bytes: Buffer,
    where: 'push' | 'unshift',
  ): void {
    state.unparsed[where](bytes)
    unparsedBytes += bytes.length
    if (unparsedBytes <= unparsedRoom) return
    dropUnparsed(state)
    closeAfterResponse(state, socket)
  }

  function startNext(socket: Socket, parser: Parser, start: Parser['onIncoming']): void {
    const state = stateOf(socket)
    if (socket.destroyed || state.next === null) return
    if (state.isClosing || !socket.writable) {
      socket.destroySoon()
      return
    }
    const { request, keepAlive } = state.next
    state.next = null
    start(request, keepAlive)
    while (state.next === null && socket.writable) {
      const bytes = state.unparsed.shift()
      if (bytes === undefined) {
        socket.resume()
        return
      }
      unparsedBytes -= bytes.length
      // Node also pauses the parser, when the client does not read.
      parser.resume()
      // Node's own data listener parses the bytes and handles errors.
      for (const parse of socket.listeners('data')) parse.call(socket, bytes)
    }
  }

  server.on('connection', (socket: Socket) => {
    const parser = parserOf(socket)
    const start = parser.onIncoming
    parser.onIncoming = (request, keepAlive) => {
      // RFC 9112, section 9.6: process no request after the response that closes the connection.
      if (!socket.writable) return pauseParsing
      const response = currentResponse(socket)
      if (response === null) return start(request, keepAlive)
      const state = stateOf(socket)
      state.next = { request, keepAlive }
      if (isUpgrade(request)) {
        // The parser does not report a pause at an upgrade request, so the bytes after it would be lost.
        request.upgrade = false
        stopReading(socket)
        closeAfterResponse(state, socket)
      } else state.isPausing = true
      response.once('close', () => schedule(() => startNext(socket, parser, start)))
      return pauseParsing
    }
  })

  server.on('clientError', (error: PauseError, socket: Socket) => {
    if (!isParserPause(error) || !error.rawPacket) return
    const state = stateOf(socket)
    if (state.next === null) {
      // After a response that closes the connection nothing is parsed. In any other case bytes would be lost.
      if (socket.writable) socket.destroy()
      return
    }
    stopReading(socket)
    if (state.isPausing) {
      state.isPausing = false
      const rest = error.rawPacket.subarray(error.bytesParsed)
      keepUnparsed(state, socket, rest.length > 0 ? compact(rest) : noBytes, 'unshift')
      // Bytes that arrived while the parser was paused; all of them are unparsed.
    } else keepUnparsed(state, socket, error.rawPacket, 'push')
  })
}

/** Copies bytes that keep more than twice their size in memory. Copying always would copy a read once for each of its requests. */
const compact = (bytes: Buffer): Buffer =>
  bytes.buffer.byteLength > 2 * bytes.length ? Buffer.from(bytes) : bytes

function closeAfterResponse(state: PipelineState, socket: Socket): void {
  state.isClosing = true
  const response = currentResponse(socket)
  if (response) response.shouldKeepAlive = false
}

/** Whether it has `Upgrade` or is a CONNECT. Node detaches the parser from the connection unless the flag is cleared. */
const isUpgrade = (request: IncomingMessage): request is IncomingMessage & { upgrade: boolean } =>
  'upgrade' in request && request.upgrade === true

/** Runs a few steps in each event-loop tick, in order, so that other connections are served in between. */
function createTickScheduler(): (step: () => void) => void {
  const steps: (() => void)[] = []
  let isScheduled = false
  function run(): void {
    for (const step of steps.splice(0, startsPerTick)) step()
    isScheduled = steps.length > 0
    if (isScheduled) setImmediate(run)
  }
  return (step) => {
    steps.push(step)
    if (!isScheduled) setImmediate(run)
    isScheduled = true
  }
}

interface PauseError extends Error {
  readonly code?: string
  readonly rawPacket?: Buffer
  readonly bytesParsed?: number
}

/** The event stops the handle too: after a resume and a pause in one tick the stream counts as paused but is read. */
function stopReading(socket: Socket): void {
  socket.pause()
  socket.emit('pause')
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
  typeof value.onIncoming === 'function' &&
  'resume' in value &&
  typeof value.resume === 'function'

/** The unfinished response of a connection, null where there is none. Node has no public API for it. */
export const currentResponse = (socket: Socket): ServerResponse | null =>
  '_httpMessage' in socket && socket._httpMessage instanceof ServerResponse ? socket._httpMessage : null
