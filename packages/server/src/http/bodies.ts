import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import { setImmediate as nextTick } from 'node:timers/promises'
import { maxIds } from '@mediabucket/client/rules'
import { Fault, type FaultCode, type ParameterFault } from '../core/faults.ts'
import { isObject, type JsonObject } from '../core/json.ts'
import { Slab } from '../core/slab.ts'
import type { ServiceScope } from '../core/token-rules.ts'
import type { AuthorizedJsonReader } from './authorizer.ts'
import { restartIdleTimer } from './client-connections.ts'
import type { RequestParts } from './route.ts'

/**
 * Yields the body as it arrives. The memory of a chunk is freed when the next one is requested. If the client expects
 * `100 Continue`, it is sent before the first read. A reader that stops early does not destroy the request, so a response
 * can follow.
 */
export type BodyReader = (request: IncomingMessage) => AsyncGenerator<Uint8Array, void, void>

export function createBodyReader(backpressure: Backpressure): BodyReader {
  return async function* readBody(request) {
    const ticket = backpressure.open(request)
    try {
      await ticket.waitUntilResumed()
      sendContinue(request)
      for await (const chunk of request.iterator({ destroyOnReturn: false })) {
        ticket.hold(chunk.byteLength)
        yield chunk
        ticket.release(chunk.byteLength)
        freeMemory(chunk)
        await ticket.waitUntilResumed()
      }
    } finally {
      ticket.close()
    }
  }
}

/**
 * Reads the whole body of a request that has a Content-Length. If the client expects `100 Continue`, it is sent before. If the body has not arrived completely, its
 * length is reserved from `room`. If there is not enough room, nothing is read and the result is null.
 */
export type WholeBodyReader = (request: IncomingMessage) => Promise<Uint8Array | null>

export function createWholeBodyReader(backpressure: Backpressure, room: number): WholeBodyReader {
  let reserved = 0
  return async (request) => {
    // Most small bodies arrive together with their headers.
    if (request.complete) return joined(arrivedChunks(request), request)
    const length = contentLength(request)
    if (reserved + length > room) return null
    reserved += length
    const ticket = backpressure.open(request)
    try {
      await ticket.waitUntilResumed()
      sendContinue(request)
      return joined(await collect(request), request)
    } finally {
      reserved -= length
      ticket.close()
    }
  }
}

const contentLength = ({ headers }: IncomingMessage): number => Number(headers['content-length'])

function arrivedChunks(request: IncomingMessage): Uint8Array[] {
  const chunks: Uint8Array[] = []
  for (;;) {
    const chunk: unknown = request.read()
    if (!(chunk instanceof Uint8Array)) return chunks
    chunks.push(chunk)
  }
}

/** Throws if bytes are missing. Node usually reports this earlier as an error. */
function joined(chunks: readonly Uint8Array[], request: IncomingMessage): Uint8Array {
  const [first, ...others] = chunks
  const bytes = first && others.length === 0 ? first : Buffer.concat(chunks)
  if (bytes.byteLength !== contentLength(request)) throw abortedError()
  return bytes
}

/** Uses events, which cost less than Node's iterator for one or two chunks. */
function collect(request: IncomingMessage): Promise<Uint8Array[]> {
  return new Promise((resolve, reject) => {
    const rejectIfIncomplete = () => {
      if (!request.readableEnded) reject(request.errored ?? abortedError())
    }
    if (request.destroyed) return reject(request.errored ?? abortedError())
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.once('end', () => resolve(chunks))
    request.once('error', reject)
    request.once('close', rejectIfIncomplete)
  })
}

/** The error that Node throws for an aborted request. */
const abortedError = (): Error => Object.assign(new Error('aborted'), { code: 'ECONNRESET' })

/**
 * Frees the memory of a chunk that owns its buffer. Otherwise the garbage collector runs dozens of times for each gigabyte
 * of bodies. These runs take longer than hashing the bytes.
 */
function freeMemory({ buffer, byteLength }: Buffer): void {
  if (buffer instanceof ArrayBuffer && buffer.byteLength === byteLength) buffer.transfer(0)
}

/**
 * Limits the bytes of all bodies that have been read and are not processed yet. While they exceed `room`, all
 * connections with an open ticket are paused: the bytes of thousands of clients wait in the system's buffers and on the
 * clients, not in this process.
 */
export class Backpressure {
  readonly #room: number
  readonly #open = new Slab<IncomingMessage>()
  #held = 0
  #paused: PromiseWithResolvers<void> | null = null
  #isScheduled = false

  constructor(room: number) {
    this.#room = room
  }

  /** Opens the ticket of a body. */
  open(request: IncomingMessage): Ticket {
    const ticket = new Ticket(this, request.socket, this.#open.add(request))
    this.keepPaused()
    // An abandoned reader does not call close.
    request.once('close', () => ticket.close())
    return ticket
  }

  /** Returns undefined while bodies may be read, otherwise a promise for the time when they may. */
  waitUntilResumed(socket: Socket): Promise<void> | undefined {
    return this.#paused ? this.#resumed(socket) : undefined
  }

  /** Readers continue in different ticks, because one reader can cause the next pause. */
  async #resumed(socket: Socket): Promise<void> {
    while (this.#paused) {
      await this.#paused.promise
      await nextTick()
    }
    restartIdleTimer(socket)
  }

  /** Changes the bytes that have been read and are not processed yet. */
  change(bytes: number, source: Socket): void {
    this.#held += bytes
    if (this.#paused === null && this.#held > this.#room) {
      this.#paused = Promise.withResolvers()
      // Immediately, because thousands of sockets can be read in one tick; the source may be about to resume, so not it.
      for (const { socket } of this.#open.values()) if (socket !== source) socket.pause()
      this.#pauseOrResume()
    } else if (this.#paused !== null && this.#held <= this.#room / 2) {
      this.#paused.resolve()
      this.#paused = null
      this.#pauseOrResume()
    }
  }

  /** Pauses in the next tick what has been opened or resumed while bodies are paused. */
  keepPaused(): void {
    if (this.#paused) this.#pauseOrResume()
  }

  /**
   * Pauses or resumes the connections in the next tick. A stream that is resumed and paused within one tick continues to
   * read and ignores Node's own pauses afterwards. For that reason streams are resumed only here.
   */
  #pauseOrResume(): void {
    if (this.#isScheduled) return
    this.#isScheduled = true
    setImmediate(() => {
      this.#isScheduled = false
      for (const { socket, readableLength, readableHighWaterMark } of this.#open.values()) {
        if (this.#paused) socket.pause()
        else if (readableLength < readableHighWaterMark) {
          socket.resume()
          restartIdleTimer(socket)
        }
      }
    })
  }

  remove(key: number, socket: Socket): void {
    this.#open.remove(key)
    // The next request of this connection may have no body, and must be read even while bodies are paused.
    if (this.#paused && ![...this.#open.values()].some((other) => other.socket === socket)) socket.resume()
  }
}

/** The share of one body in the backpressure. */
class Ticket {
  readonly #backpressure: Backpressure
  readonly #socket: Socket
  readonly #key: number
  #held = 0
  #isClosed = false

  constructor(backpressure: Backpressure, socket: Socket, key: number) {
    this.#backpressure = backpressure
    this.#socket = socket
    this.#key = key
  }

  /** Returns undefined while bodies may be read, otherwise a promise for the time when they may. */
  waitUntilResumed(): Promise<void> | undefined {
    return this.#backpressure.waitUntilResumed(this.#socket)
  }

  /** Counts bytes that have been read and are not processed yet. */
  hold(bytes: number): void {
    this.#held += bytes
    this.#backpressure.change(bytes, this.#socket)
    this.#backpressure.keepPaused()
  }

  release(bytes: number): void {
    const released = Math.min(bytes, this.#held)
    this.#held -= released
    this.#backpressure.change(-released, this.#socket)
  }

  /** Releases all bytes of this body. Can be called more than once. */
  close(): void {
    this.#backpressure.change(-this.#held, this.#socket)
    this.#held = 0
    if (this.#isClosed) return
    this.#isClosed = true
    this.#backpressure.remove(this.#key, this.#socket)
  }
}

/** How long a client may continue to send a refused body, so that it can read the response. Milliseconds. */
const discardTimeout = 5_000

/** The responses to requests whose clients wait for `100 Continue`. */
const awaitingContinue = new WeakMap<IncomingMessage, ServerResponse>()

/** Handles requests with `Expect` like all others, without Node's automatic responses (docs/interface.md U11). */
export function handleExpectations(server: Server): void {
  // Without this listener Node sends `100 Continue` at once. sendContinue sends it instead.
  server.on('checkContinue', (request, response) => {
    awaitingContinue.set(request, response)
    server.emit('request', request, response)
  })
  // Other expectations are ignored, as RFC 9110, section 10.1.1, allows. Node's own 417 has no problem body (P1).
  server.on('checkExpectation', (request, response) => server.emit('request', request, response))
}

/** After the response to a request with a body, discards the unread rest of it for a few seconds, then closes the connection. */
export function discardUnreadBody(request: IncomingMessage, response: ServerResponse): void {
  // Before Node's own listener, which may close the connection.
  response.prependOnceListener('finish', () => {
    if (isUnread(request)) lingerOnClose(request)
  })
  response.once('finish', () => {
    if (isUnread(request)) discardRest(request)
  })
}

const isUnread = ({ complete, destroyed }: IncomingMessage): boolean => !complete && !destroyed

export const hasBody = ({ headers }: IncomingMessage): boolean =>
  headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0

/**
 * Closes only the sending side of the connection until the body has ended. Node closes both sides; bytes that arrive
 * afterwards reset the connection, and the client loses the response.
 */
function lingerOnClose(request: IncomingMessage): void {
  const { socket } = request
  // Assigned only if it is needed. V8 allocates such a function in the old generation, where it keeps the request in memory.
  socket.destroySoon = () =>
    request.complete ? Socket.prototype.destroySoon.call(socket) : void socket.end()
}

/** The connections of which the rest of a body is discarded. */
const discarding = new WeakSet<Socket>()

/** Whether the connection had its response, and the rest of the request's body is discarded. */
export const isDiscarding = (socket: Socket): boolean => discarding.has(socket)

function discardRest(request: IncomingMessage): void {
  const { socket } = request
  discarding.add(socket)
  const timer = setTimeout(() => socket.destroy(), discardTimeout)
  request.once('close', () => clearTimeout(timer))
  request.once('end', () => {
    discarding.delete(socket)
    clearTimeout(timer)
    if (socket.writableEnded) socket.destroy()
  })
  request.resume()
}

/** Sends `100 Continue` to a client that waits for it. */
function sendContinue(request: IncomingMessage): void {
  awaitingContinue.get(request)?.writeContinue()
  awaitingContinue.delete(request)
}

/** Reads and discards a body, so that the connection can be reused. Throws Fault above `limit` bytes. */
export async function discardBody(request: IncomingMessage, limit: number): Promise<void> {
  const tooLarge = () =>
    new Fault('body-too-large', 'This operation does not accept a body of this size.', {
      members: { maximum: limit, unit: 'bytes' },
    })
  if (Number(request.headers['content-length'] ?? 0) > limit) throw tooLarge()
  let size = 0
  sendContinue(request)
  for await (const chunk of request.iterator({ destroyOnReturn: false })) {
    size += chunk.byteLength
    if (size > limit) throw tooLarge()
  }
}

/** The problems of a request whose body is not such an object. */
export const jsonBodyProblems: readonly FaultCode[] = [
  'json-malformed',
  'upload-incomplete',
  'body-too-large',
  'content-type-unsupported',
  'content-coding-unsupported',
]

/** Bytes. Twice the longest texts of an item with every character escaped. */
const maxJsonBody = 131_072

/** Milliseconds in which the whole body must arrive. A client must not keep an authorized request open. */
const deadline = 30_000

/** The number of unknown members that a problem names. */
const maxFaults = 20

const decoder = new TextDecoder('utf-8', { fatal: true })

/**
 * Reads a body that is a JSON object with these members, all optional, or with any if `members` is null. Throws Fault `content-type-unsupported`,
 * `content-coding-unsupported`, `body-too-large`, `request-timeout` and `json-malformed`.
 */
export async function readJsonObject(
  request: IncomingMessage,
  readBody: BodyReader,
  members: readonly string[] | null,
  types: readonly string[] = ['application/json'],
): Promise<JsonObject> {
  const { headers } = request
  const type = headers['content-type']?.split(';', 1)[0]?.trim().toLowerCase() ?? ''
  if (!types.includes(type))
    throw new Fault('content-type-unsupported', `Send the body with Content-Type: ${types.join(' or ')}.`, {
      members: { accepted: types },
    })
  if (headers['content-encoding'] !== undefined)
    throw new Fault('content-coding-unsupported', 'Send the body without Content-Encoding.')
  const value = parse(await withDeadline(request, readAll(request, readBody)))
  if (!isObject(value)) throw new Fault('json-malformed', 'The body is not a JSON object.')
  if (members === null) return value
  const known: ReadonlySet<string> = new Set(members)
  const unknown = Object.keys(value).filter((name) => !known.has(name))
  if (unknown.length > 0) {
    const detail = `The object has no such member; its members are ${members.join(', ')}.`
    throw malformed(unknown.slice(0, maxFaults).map((parameter) => ({ parameter, detail, members })))
  }
  return value
}

export const createAuthorizedJsonReader =
  <Name extends ServiceScope, By>(
    authorize: (
      exchange: RequestParts,
      scope: Name,
      options?: { readonly isCounted?: boolean; readonly previous?: By },
    ) => Promise<By>,
    readBody: BodyReader,
  ): AuthorizedJsonReader<Name, By> =>
  async (exchange, scope, members, types) => {
    const previous = await authorize(exchange, scope)
    const body = await readJsonObject(exchange.request, readBody, members, types)
    return { body, caller: await authorize(exchange, scope, { isCounted: true, previous }) }
  }

/** The fault of members that are unknown or have wrong values. */
export function malformed(parameters: readonly ParameterFault[]): Fault {
  const [first] = parameters
  const reason = first ? ` \`${first.parameter.slice(0, 100)}\`: ${first.detail}` : ''
  return new Fault('json-malformed', `The operation does not accept the JSON object.${reason}`, {
    parameters,
  })
}

async function readAll(request: IncomingMessage, readBody: BodyReader): Promise<Uint8Array> {
  const tooLarge = () =>
    new Fault('body-too-large', `The body has more than ${maxJsonBody} bytes.`, {
      members: { maximum: maxJsonBody, unit: 'bytes' },
    })
  if (Number(request.headers['content-length'] ?? 0) > maxJsonBody) throw tooLarge()
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of readBody(request)) {
    size += chunk.byteLength
    if (size > maxJsonBody) throw tooLarge()
    // The memory of a chunk is freed when the next one is read.
    chunks.push(Uint8Array.from(chunk))
  }
  return Buffer.concat(chunks)
}

/** Throws Fault `request-timeout` if the body takes too long to arrive. */
export async function withDeadline<T>(request: IncomingMessage, reading: Promise<T>): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(async () => {
    await readArrived(request)
    if (!request.complete)
      reject(new Fault('request-timeout', `The body took longer than ${deadline / 1000} seconds to arrive.`))
  }, deadline)
  try {
    return await Promise.race([reading, promise])
  } finally {
    clearTimeout(timer)
  }
}

/** Milliseconds in which bytes that have arrived are read. */
const longestRead = 1_000

/**
 * Resolves when all bytes that have arrived are read. After a time in which the process did not run, timers are late, and what the client has
 * sent in time is still unread. Each iteration of the event loop reads a part of it.
 */
async function readArrived(request: IncomingMessage): Promise<void> {
  const { socket } = request
  const start = performance.now()
  for (let before = -1; before !== socket.bytesRead && performance.now() - start < longestRead; ) {
    before = socket.bytesRead
    await nextTick()
  }
}

function parse(body: Uint8Array): unknown {
  try {
    return JSON.parse(decoder.decode(body))
  } catch (cause) {
    throw new Fault('json-malformed', 'The body is not JSON in UTF-8.', { cause })
  }
}

/** Returns the member `ids` of a JSON body. The ids may be any texts. Throws Fault `json-malformed`. */
export function readIds(value: unknown): readonly string[] {
  if (Array.isArray(value) && value.length > 0 && value.length <= maxIds && value.every(isString))
    return value
  throw malformed([
    {
      parameter: 'ids',
      detail: `An array of 1 to ${maxIds} ids, which are strings.`,
      minimum: 1,
      maximum: maxIds,
      unit: 'entries',
    },
  ])
}

const isString = (value: unknown): value is string => typeof value === 'string'
