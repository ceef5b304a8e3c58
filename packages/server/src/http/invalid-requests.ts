import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { BaseLogger } from 'pino'
import { Fault } from '../core/faults.ts'
import { isDiscarding } from './bodies.ts'
import {
  closeAfter,
  createLingeringClose,
  currentResponse,
  isParserPause,
  unlessRequestArrives,
} from './client-connections.ts'
import type { CorsPolicy } from './cors.ts'
import { supportedVersions } from './headers.ts'
import type { FaultSerializer } from './problems.ts'
import { type CodeAndDetail, incompleteBody } from './problems.ts'
import { newRequestId } from './request-ids.ts'

const notHttp: CodeAndDetail = ['request-malformed', 'The request is not valid HTTP.']

/** RFC 9112, section 2.2, allows to refuse a line that ends with LF alone. */
const bareLineEnd: CodeAndDetail = ['request-malformed', 'A line of the request does not end with CRLF.']

/** Node.js reports it as an invalid version if the line is the first one. */
const isBareLineEnd = (error: Error): boolean =>
  'reason' in error && String(error.reason).startsWith('Expected CRLF after version')

/** The bytes that the parser refused with this error. */
const refusedBytes = (error: Error): Buffer =>
  'rawPacket' in error && Buffer.isBuffer(error.rawPacket) ? error.rawPacket : Buffer.alloc(0)

/** Of a head that is too large, so many further bytes are read, and for so long (milliseconds), to find its origin. */
const longestRest = 65_536
const longestRestTime = 1_000

/** The part of a head that the parser refused, and what follows it: Node reports the error again with each further read. */
class RefusedHead {
  #text = ''
  #isEnded = false
  readonly #timer: NodeJS.Timeout
  readonly #onEnd: (origin: string | null) => void

  /** Calls `onEnd` once, with the origin that the head names, so that a page of it can read the problem. */
  constructor(onEnd: (origin: string | null) => void) {
    this.#onEnd = onEnd
    this.#timer = setTimeout(() => this.end(), longestRestTime)
  }

  add(bytes: Buffer): void {
    if (this.#isEnded) return
    const before = Math.max(this.#text.length - 3, 0)
    this.#text += bytes.toString('latin1')
    if (this.#text.includes('\r\n\r\n', before) || this.#text.length >= longestRest) this.end()
  }

  end(): void {
    if (this.#isEnded) return
    this.#isEnded = true
    clearTimeout(this.#timer)
    const end = this.#text.indexOf('\r\n\r\n')
    const head = end < 0 ? this.#text : this.#text.slice(0, end + 2)
    this.#text = ''
    const [, origin = null] = /\r\norigin:[ \t]*([!-~]{1,255})[ \t]*\r\n/i.exec(head) ?? []
    this.#onEnd(origin)
  }
}

const parserFaults: Readonly<Record<string, CodeAndDetail>> = {
  HPE_HEADER_OVERFLOW: ['headers-too-large', 'The headers of the request exceed 16 KiB.'],
  HPE_INVALID_VERSION: ['http-version-unsupported', supportedVersions],
  // The preface of HTTP/2.
  HPE_PAUSED_H2_UPGRADE: ['http-version-unsupported', supportedVersions],
  ERR_HTTP_REQUEST_TIMEOUT: ['request-timeout', 'The headers of the request took too long to arrive.'],
}

/** Responds to bytes that are no valid request, then closes the connection, whose framing is lost (RFC 9112): for `clientError` of a server. */
export function refuseInvalidRequests(serialize: FaultSerializer, log: BaseLogger, corsHeaders: CorsPolicy) {
  const closing = new WeakSet<ServerResponse>()
  /** Connections whose response waits for the rest of a head, or is sent. */
  const heads = new WeakMap<Socket, RefusedHead>()
  const sendAndClose = createLingeringClose()

  function refuse(error: Error & { code?: string }, socket: Socket): void {
    const refused = heads.get(socket)
    if (refused !== undefined) {
      refused.add(refusedBytes(error))
      return
    }
    // The request has its response and its line in the log. Most clients close the connection instead of sending the rest of the body.
    if (isDiscarding(socket)) {
      socket.destroy()
      return
    }
    const response = currentResponse(socket)
    if (response?.req.complete && error.code !== 'ECONNRESET' && socket.writable) {
      // The client would take a problem for the response to its previous request, so none is sent. Each further read reports the error.
      if (!closing.has(response)) closeAfter(response, socket)
      closing.add(response)
      return
    }
    // A problem would become part of the body of a response that has begun.
    if (error.code === 'ECONNRESET' || !socket.writable || response?.headersSent) {
      socket.destroy()
      return
    }
    const endedEarly = error.code === 'HPE_INVALID_EOF_STATE' && response !== null
    const [code, detail] = endedEarly
      ? incompleteBody
      : isBareLineEnd(error)
        ? bareLineEnd
        : (parserFaults[error.code ?? ''] ?? notHttp)
    const head = new RefusedHead((origin) => {
      // The client has closed the connection in the meantime.
      if (!socket.writable) {
        socket.destroy()
        return
      }
      const requestId = newRequestId()
      const cors = corsHeaders(response?.req.headers ?? (origin === null ? {} : { origin }))
      const { status, bytes } = serialize(new Fault(code, detail), requestId, cors)
      log.info({ requestId, status, reason: error.code }, 'refused an invalid request')
      sendAndClose(socket, bytes)
    })
    heads.set(socket, head)
    head.add(refusedBytes(error))
    if (response !== null || error.code !== 'HPE_HEADER_OVERFLOW') head.end()
  }

  return (error: Error & { code?: string }, socket: Socket): void => {
    if (isParserPause(error)) return
    if (error.code === 'ERR_HTTP_REQUEST_TIMEOUT') unlessRequestArrives(socket, () => refuse(error, socket))
    else refuse(error, socket)
  }
}
