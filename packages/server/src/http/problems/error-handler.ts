import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify'
import { problemResponse } from './problem-response.ts'
import type { FaultReporter } from './report-fault.ts'

/** Headers that a route may have set for a success before it failed. */
const successHeaders = ['etag', 'last-modified', 'content-disposition', 'content-length', 'accept-ranges']

/** The framework's error handler: responds to every error with a problem (docs/interface.md P1, P5). */
export function createErrorHandler(baseUrl: string, reportFault: FaultReporter) {
  return (error: FastifyError | Error, request: FastifyRequest, reply: FastifyReply) => {
    const fault = reportFault(error, request.raw, request.id)
    const { status, headers, body } = problemResponse(fault, baseUrl, request.id)
    for (const name of successHeaders) reply.removeHeader(name)
    return reply.code(status).headers(headers).send(body)
  }
}
