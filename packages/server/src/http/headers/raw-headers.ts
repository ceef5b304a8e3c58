import type { IncomingMessage } from 'node:http'
import { Fault } from '../../core/fault.ts'

/** Returns how many times the request has a header. `name` is lower-case. Node drops repeated fields from `request.headers`. */
export function countHeader(request: IncomingMessage, name: string): number {
  let count = 0
  for (let i = 0; i < request.rawHeaders.length; i += 2) {
    const sent = request.rawHeaders[i]
    if (sent?.length === name.length && sent.toLowerCase() === name) count += 1
  }
  return count
}

/**
 * Throws Fault unless the request has exactly one Host header (RFC 9112, section 3.2). HTTP/1.0 requests may omit it.
 * Node's own check accepts a repeated Host.
 */
export function requireHostHeader(request: IncomingMessage): void {
  const count = countHeader(request, 'host')
  if (count > 1) throw new Fault('request-malformed', 'The request has more than one Host header.')
  if (count === 0 && request.httpVersion !== '1.0')
    throw new Fault('request-malformed', 'The request has no Host header.')
}
