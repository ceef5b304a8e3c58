import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify'
import { Fault, type FaultCode } from '../../core/fault.ts'
import type { RequestLimits } from '../limits/request-limits.ts'
import { problemResponse } from './problem-response.ts'
import { problemKinds } from './problems.ts'

/** Answers the fault as a problem (docs/interface.md P1, P5). */
function sendProblem(reply: FastifyReply, fault: Fault, baseUrl: string): FastifyReply {
  const { status, headers, body } = problemResponse(fault, baseUrl, reply.request.id)
  // Whatever the route had begun to say of a success belongs to no problem.
  for (const name of ['etag', 'last-modified', 'content-disposition', 'content-length', 'accept-ranges']) {
    reply.removeHeader(name)
  }
  return reply.code(status).headers(headers).send(body)
}

/** The code of a fault and its detail. */
export type CodeAndDetail = readonly [FaultCode, detail: string]

export const incompleteBody: CodeAndDetail = [
  'upload-incomplete',
  'The connection ended before the whole body had arrived.',
]

/** What Node and Fastify throw for requests that are at fault, in our words. */
const libraryErrors: Readonly<Record<string, CodeAndDetail>> = {
  FST_ERR_BAD_URL: ['request-malformed', 'The path of the request cannot be decoded.'],
  FST_ERR_CTP_INVALID_MEDIA_TYPE: ['request-malformed', 'The Content-Type header is not a media type.'],
  ECONNRESET: incompleteBody,
}

/** The system has no descriptor, memory, thread or process left. */
const shortages: ReadonlySet<string> = new Set(['EMFILE', 'ENFILE', 'ENOMEM', 'EAGAIN'])

/** Turns anything thrown into a Fault; what nobody expected becomes a bare `internal`. */
export function toFault(error: unknown): Fault {
  if (error instanceof Fault) return error
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  const known = typeof code === 'string' ? libraryErrors[code] : undefined
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
  { countAuthFailure }: RequestLimits,
  countError: (error: unknown) => void,
) {
  return (error: FastifyError | Error, request: FastifyRequest, reply: FastifyReply) => {
    const fault = countAuthFailure(toFault(error), request.raw)
    if (problemKinds[fault.code].status >= 500 && !isRefusal(fault)) {
      countError(fault)
      request.log.error({ err: fault.cause ?? fault }, fault.message)
    }
    return sendProblem(reply, fault, baseUrl)
  }
}
