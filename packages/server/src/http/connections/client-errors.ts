import { randomUUID } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { BaseLogger } from 'pino'
import { Fault } from '../../core/fault.ts'
import { isDiscarding } from '../bodies/unread-bodies.ts'
import { isParserPause } from '../node-internals.ts'
import { type CodeAndDetail, incompleteBody } from '../problems/report-fault.ts'
import { serializeProblem } from './last-response.ts'
import { closeAfter, currentResponse } from './pipelining.ts'
import { supportedVersions } from './require-http1.ts'

const notHttp: CodeAndDetail = ['request-malformed', 'The request is not valid HTTP.']

const parserFaults: Readonly<Record<string, CodeAndDetail>> = {
  HPE_HEADER_OVERFLOW: ['headers-too-large', 'The headers of the request exceed 16 KiB.'],
  HPE_INVALID_VERSION: ['http-version-unsupported', supportedVersions],
  // The preface of HTTP/2.
  HPE_PAUSED_H2_UPGRADE: ['http-version-unsupported', supportedVersions],
  ERR_HTTP_REQUEST_TIMEOUT: ['request-timeout', 'The headers of the request took too long to arrive.'],
}

/** Responds to bytes that are no valid request, then closes the connection, whose framing is lost (RFC 9112). */
export function createClientErrorHandler(baseUrl: string, log: BaseLogger) {
  const closing = new WeakSet<ServerResponse>()

  return (error: Error & { code?: string }, socket: Socket) => {
    if (isParserPause(error)) return
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
    const [code, detail] = endedEarly ? incompleteBody : (parserFaults[error.code ?? ''] ?? notHttp)
    const requestId = randomUUID()
    const { status, bytes } = serializeProblem(new Fault(code, detail), baseUrl, requestId)
    log.info({ requestId, status, reason: error.code }, 'refused an invalid request')
    socket.end(bytes)
  }
}
