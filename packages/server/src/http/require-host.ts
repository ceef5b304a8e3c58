import type { FastifyRequest } from 'fastify'
import { Fault } from '../core/fault.ts'
import { timesSent } from './sent-headers.ts'

/** RFC 9112, section 3.2. Node looks for a missing Host alone, and its own answer to that is no problem (P1). */
export function requireHost({ raw }: FastifyRequest): void {
  const times = timesSent(raw, 'host')
  if (times > 1) throw new Fault('request-malformed', 'The request has more than one Host header.')
  if (times === 0 && raw.httpVersion !== '1.0')
    throw new Fault('request-malformed', 'The request has no Host header.')
}
