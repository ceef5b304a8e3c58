import { type IncomingMessage, type Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { UnsupportedNodeError } from '../../core/unsupported-node.ts'

// Node parses all requests of a read at once and starts every one: 64 kB of pipelined requests are 3,000 of them.
// So the parser is paused at each request that arrives behind an unfinished one (docs/interface.md N1). Node has no
// public way to do this: what its parser's `onIncoming` returns is the verdict on the headers for llhttp.

/** Bytes of all connections together that are read and not parsed. A connection beyond them is closed after its answer. */
const unparsedRoom = 16 * 1024 * 1024

/** llhttp stops after the headers, and goes on from there once it is resumed. Its error code has the same name. */
const pauseParsing = 21
const pausedCode = 'HPE_PAUSED'

/** Pipelined requests of all connections together that start in one turn of the event loop. */
const startsPerTurn = 8

/** Parsing them ends the request at which the parser was paused. Not `Buffer.alloc(0)`: the parser takes that for the end of the connection. */
const noBytes = Buffer.alloc(1).subarray(1)

interface Parser {
  onIncoming(request: IncomingMessage, keepAlive: boolean): number
  resume(): void
}

/** A connection with a request that waits for the answer before it. */
interface Waiting {
  next: { readonly request: IncomingMessage; readonly keepAlive: boolean } | null
  /** Whether the error that reports the pause is still to come. */
  isPausing: boolean
  unparsed: Buffer[]
  /** Whether the connection is closed after the present answer. */
  isOver: boolean
}

/** Whether the error only reports that the parser was paused. */
export const isParserPause = (error: { readonly code?: string }): boolean => error.code === pausedCode

/**
 * Starts one request of a connection at a time, in order, and few of all connections in each turn of the event loop. One more is
 * parsed; what follows stays unparsed, and nothing more is read from the connection.
 */
export function limitPipelining(server: Server): void {
  const waiting = new WeakMap<Socket, Waiting>()
  let unparsedBytes = 0
  const schedule = createSchedule()

  function waitingOf(socket: Socket): Waiting {
    const known = waiting.get(socket)
    if (known) return known
    const created: Waiting = { next: null, isPausing: false, unparsed: [], isOver: false }
    waiting.set(socket, created)
    // Node starts reading again where a message ends or a body is read.
    socket.on('resume', () => {
      if (created.next) stopReading(socket)
    })
    socket.once('close', () => drop(created))
    return created
  }

  function drop(connection: Waiting): void {
    for (const { length } of connection.unparsed) unparsedBytes -= length
    connection.unparsed = []
  }

  function add(connection: Waiting, socket: Socket, bytes: Buffer, where: 'push' | 'unshift'): void {
    connection.unparsed[where](bytes)
    unparsedBytes += bytes.length
    if (unparsedBytes <= unparsedRoom) return
    drop(connection)
    closeAfterAnswer(connection, socket)
  }

  function goOn(socket: Socket, parser: Parser, start: Parser['onIncoming']): void {
    const connection = waitingOf(socket)
    if (socket.destroyed || connection.next === null) return
    if (connection.isOver || !socket.writable) {
      socket.destroySoon()
      return
    }
    const { request, keepAlive } = connection.next
    connection.next = null
    start(request, keepAlive)
    while (connection.next === null && socket.writable) {
      const bytes = connection.unparsed.shift()
      if (bytes === undefined) {
        socket.resume()
        return
      }
      unparsedBytes -= bytes.length
      // Node pauses the parser too, where a client does not read.
      parser.resume()
      // Node's own way to take a read: parses it and deals with whatever comes of that.
      for (const parse of socket.listeners('data')) parse.call(socket, bytes)
    }
  }

  server.on('connection', (socket: Socket) => {
    const parser = parserOf(socket)
    const start = parser.onIncoming
    parser.onIncoming = (request, keepAlive) => {
      // RFC 9112, section 9.6: no request is processed after the answer that closes the connection.
      if (!socket.writable) return pauseParsing
      const answer = currentResponse(socket)
      if (answer === null) return start(request, keepAlive)
      const connection = waitingOf(socket)
      connection.next = { request, keepAlive }
      if (isUpgrade(request)) {
        // The parser reports no pause at such a request, so what follows it would be lost.
        request.upgrade = false
        stopReading(socket)
        closeAfterAnswer(connection, socket)
      } else connection.isPausing = true
      answer.once('close', () => schedule(() => goOn(socket, parser, start)))
      return pauseParsing
    }
  })

  server.on('clientError', (error: PauseError, socket: Socket) => {
    if (!isParserPause(error) || !error.rawPacket) return
    const connection = waitingOf(socket)
    if (connection.next === null) {
      // Nothing behind an answer that closes the connection is parsed. Anything else would be lost.
      if (socket.writable) socket.destroy()
      return
    }
    stopReading(socket)
    if (connection.isPausing) {
      connection.isPausing = false
      const rest = error.rawPacket.subarray(error.bytesParsed)
      add(connection, socket, rest.length > 0 ? compact(rest) : noBytes, 'unshift')
      // Read while the parser was paused, so none of it is parsed.
    } else add(connection, socket, error.rawPacket, 'push')
  })
}

/** The bytes, copied where they hold on to more than twice their memory. Copied every time, a read would be copied for each of its requests. */
const compact = (bytes: Buffer): Buffer =>
  bytes.buffer.byteLength > 2 * bytes.length ? Buffer.from(bytes) : bytes

function closeAfterAnswer(connection: Waiting, socket: Socket): void {
  connection.isOver = true
  const answer = currentResponse(socket)
  if (answer) answer.shouldKeepAlive = false
}

/** Whether it has `Upgrade`, or is a CONNECT: Node takes the connection from the parser unless the mark is removed. */
const isUpgrade = (request: IncomingMessage): request is IncomingMessage & { upgrade: boolean } =>
  'upgrade' in request && request.upgrade === true

/** Runs a few steps in each turn of the event loop, in order: others are served between them. */
function createSchedule(): (step: () => void) => void {
  const steps: (() => void)[] = []
  let isScheduled = false
  function run(): void {
    for (const step of steps.splice(0, startsPerTurn)) step()
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

/** Also where the stream counts as paused and is read nevertheless, as after a resume and a pause within one turn. */
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

/** The answer that a connection waits for, null where no request was understood. Node itself looks in the same place. */
export const currentResponse = (socket: Socket): ServerResponse | null =>
  '_httpMessage' in socket && socket._httpMessage instanceof ServerResponse ? socket._httpMessage : null
