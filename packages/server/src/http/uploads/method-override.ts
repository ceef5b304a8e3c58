import type { FastifyReply, FastifyRequest } from 'fastify'
import { Fault } from '../../core/fault.ts'

const methods = ['DELETE', 'HEAD', 'PATCH'] as const
type OverrideMethod = (typeof methods)[number]

/**
 * The method of a POST to an upload. Throws Fault `method-not-allowed`. On other methods the header is ignored, so that a
 * request never does more than its method permits (docs/interface.md R13).
 */
export function overriddenMethod(
  { headers }: Pick<FastifyRequest, 'headers'>,
  reply: FastifyReply,
): OverrideMethod {
  // tus 1.0.0, Core: the header "MUST be interpreted as the request's method by the Server, if the header is presented. The
  // actual method of the request MUST be ignored."
  const value = headers['x-http-method-override']
  const method = methods.find((name) => name === value)
  if (method !== undefined) return method
  reply.header('allow', 'DELETE, HEAD, OPTIONS, PATCH')
  throw new Fault(
    'method-not-allowed',
    `POST needs the header X-HTTP-Method-Override with ${methods.join(', ')}.`,
  )
}
