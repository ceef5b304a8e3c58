import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { FastifyBaseLogger } from 'fastify'
import { Fault } from '../../core/fault.ts'
import { type CodeAndDetail, incompleteBody } from '../problems/error-handler.ts'
import { currentResponse, isParserPause } from './pipelining.ts'
import { versions } from './require-http1.ts'
import { serializeProblem } from './serialize-problem.ts'

const notHttp: CodeAndDetail = ['request-malformed', 'The request is not valid HTTP.']

const parserFaults: Readonly<Record<string, CodeAndDetail>> = {
  HPE_HEADER_OVERFLOW: ['headers-too-large', 'The headers of the request exceed 16 KiB.'],
  HPE_INVALID_VERSION: ['http-version-unsupported', versions],
  // The preface of HTTP/2.
  HPE_PAUSED_H2_UPGRADE: ['http-version-unsupported', versions],
  ERR_HTTP_REQUEST_TIMEOUT: ['request-timeout', 'The headers of the request took too long to arrive.'],
}

/** Answers what never became a request (RFC 9112), then closes: nothing after it on the connection can be trusted. */
export function createClientErrorHandler(parts: {
  readonly baseUrl: string
  readonly log: FastifyBaseLogger
  readonly newRequestId: () => string
}) {
  const { baseUrl, log, newRequestId } = parts
  const closing = new WeakSet<ServerResponse>()

  /** A problem would be taken for the answer to the request before, which may have been carried out. */
  function closeAfter(answer: ServerResponse, socket: Socket): void {
    // Each read behind the error reports it again.
    if (closing.has(answer)) return
    closing.add(answer)
    answer.shouldKeepAlive = false
    answer.once('close', () => socket.destroySoon())
  }

  return (error: Error & { code?: string }, socket: Socket) => {
    if (isParserPause(error)) return
    const answer = currentResponse(socket)
    if (answer?.req.complete && error.code !== 'ECONNRESET' && socket.writable) {
      closeAfter(answer, socket)
      return
    }
    // Into an answer that is under way a problem would be written as a part of its body.
    if (error.code === 'ECONNRESET' || !socket.writable || answer?.headersSent) {
      socket.destroy()
      return
    }
    const endedEarly = error.code === 'HPE_INVALID_EOF_STATE' && answer !== null
    const [code, detail] = endedEarly ? incompleteBody : (parserFaults[error.code ?? ''] ?? notHttp)
    const requestId = newRequestId()
    const { status, bytes } = serializeProblem(new Fault(code, detail), baseUrl, requestId)
    log.info({ requestId, status, reason: error.code }, 'refused what is no request')
    socket.end(bytes)
  }
}
