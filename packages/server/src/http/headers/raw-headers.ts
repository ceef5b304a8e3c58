import type { IncomingMessage } from 'node:http'
import type { FastifyRequest } from 'fastify'
import { Fault } from '../../core/fault.ts'

/** How often a header was sent; `name` in lower case. Of some headers Node keeps the first and silently drops others. */
export function countHeader(request: IncomingMessage, name: string): number {
  let times = 0
  for (let i = 0; i < request.rawHeaders.length; i += 2) {
    const sent = request.rawHeaders[i]
    if (sent?.length === name.length && sent.toLowerCase() === name) times += 1
  }
  return times
}

/** RFC 9112, section 3.2. Node looks for a missing Host alone, and its own answer to that is no problem (P1). */
export function requireHostHeader({ raw }: FastifyRequest): void {
  const times = countHeader(raw, 'host')
  if (times > 1) throw new Fault('request-malformed', 'The request has more than one Host header.')
  if (times === 0 && raw.httpVersion !== '1.0')
    throw new Fault('request-malformed', 'The request has no Host header.')
}
