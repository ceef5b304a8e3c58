import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { FastifyBaseLogger, FastifyError, FastifyReply, FastifyRequest } from 'fastify'
import { Fault, type FaultCode } from '../core/fault.ts'
import { isPause } from './connections/pipelining.ts'
import { presentAnswer } from './connections/present-answer.ts'
import { rawProblem } from './connections/raw-problem.ts'
import { versions } from './connections/require-http1.ts'
import type { RequestLimits } from './limits/request-limits.ts'
import { problemAnswer } from './problem-answer.ts'
import { problemKinds } from './problems.ts'

/** Answers the fault as a problem (docs/interface.md P1, P5). */
function sendProblem(reply: FastifyReply, fault: Fault, baseUrl: string): FastifyReply {
  const { status, headers, body } = problemAnswer(fault, baseUrl, reply.request.id)
  // Whatever the route had begun to say of a success belongs to no problem.
  for (const name of ['etag', 'last-modified', 'content-disposition', 'content-length', 'accept-ranges']) {
    reply.removeHeader(name)
  }
  return reply.code(status).headers(headers).send(body)
}

type Words = readonly [FaultCode, detail: string]

const incomplete: Words = ['upload-incomplete', 'The connection ended before the whole body had arrived.']
const notHttp: Words = ['request-malformed', 'The request is not valid HTTP.']

/** What Node and Fastify throw for requests that are at fault, in our words. */
const foreignCodes: Readonly<Record<string, Words>> = {
  FST_ERR_BAD_URL: ['request-malformed', 'The path of the request cannot be decoded.'],
  FST_ERR_CTP_INVALID_MEDIA_TYPE: ['request-malformed', 'The Content-Type header is not a media type.'],
  ECONNRESET: incomplete,
}

/** The system has no descriptor, memory, thread or process left. */
const shortages: ReadonlySet<string> = new Set(['EMFILE', 'ENFILE', 'ENOMEM', 'EAGAIN'])

/** Turns anything thrown into a Fault; what nobody expected becomes a bare `internal`. */
export function faultOf(error: unknown): Fault {
  if (error instanceof Fault) return error
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  const known = typeof code === 'string' ? foreignCodes[code] : undefined
  if (known) return new Fault(known[0], known[1], { cause: error })
  if (typeof code === 'string' && shortages.has(code))
    return new Fault('overloaded', 'The service has no resources left for this request.', { cause: error })
  return new Fault('internal', 'The service met an unexpected error and has logged it.', { cause: error })
}

/** A full bucket, or a reserve of free space that is reached, is no failure of the service, though its status is of that kind. */
const isRefusal = ({ code, cause }: Fault): boolean =>
  code === 'quota-exceeded' || (code === 'storage-full' && cause === undefined)

export function createErrorHandler(
  baseUrl: string,
  { countFailure }: RequestLimits,
  countError: (error: unknown) => void,
) {
  return (error: FastifyError | Error, request: FastifyRequest, reply: FastifyReply) => {
    const fault = countFailure(faultOf(error), request.raw)
    if (problemKinds[fault.code].status >= 500 && !isRefusal(fault)) {
      countError(fault)
      request.log.error({ err: fault.cause ?? fault }, fault.message)
    }
    return sendProblem(reply, fault, baseUrl)
  }
}

const parserFaults: Readonly<Record<string, Words>> = {
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
    if (isPause(error)) return
    const answer = presentAnswer(socket)
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
    const [code, detail] = endedEarly ? incomplete : (parserFaults[error.code ?? ''] ?? notHttp)
    const requestId = newRequestId()
    const { status, bytes } = rawProblem(new Fault(code, detail), baseUrl, requestId)
    log.info({ requestId, status, reason: error.code }, 'refused what is no request')
    socket.end(bytes)
  }
}
