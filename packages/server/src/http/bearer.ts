import type { IncomingMessage } from 'node:http'
import { Fault } from '../core/fault.ts'

const scheme = /^bearer +(\S+) *$/i

/** The token of the one Authorization header (docs/interface.md A1, A2, A4). Throws Fault where there is none. */
export function bearerToken(request: IncomingMessage): string {
  const header = request.headers.authorization
  if (header === undefined) {
    throw new Fault('token-missing', 'Send the header `Authorization: Bearer` with a token of this bucket.')
  }
  if (isRepeated(request)) {
    throw new Fault(
      'authorization-repeated',
      'The request has more than one Authorization header; send exactly one.',
    )
  }
  const token = scheme.exec(header)?.[1]
  if (token === undefined) {
    throw new Fault('token-missing', 'The Authorization header must have the form `Bearer` and a token.')
  }
  return token
}

/** Node keeps the first Authorization header and silently drops the others, so only the raw list tells. */
function isRepeated(request: IncomingMessage): boolean {
  let seen = 0
  for (let i = 0; i < request.rawHeaders.length; i += 2) {
    const name = request.rawHeaders[i]
    if (name?.length === 13 && name.toLowerCase() === 'authorization') seen += 1
  }
  return seen > 1
}
