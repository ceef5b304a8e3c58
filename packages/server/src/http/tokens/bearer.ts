import type { IncomingMessage } from 'node:http'
import { Fault } from '../../core/fault.ts'
import { timesSent } from '../headers/sent-headers.ts'

/** What follows the scheme, spaces within it included: that is a token too, if a malformed one. */
const credentials = /^bearer +(\S.*)$/i

/** The one Authorization header (docs/interface.md A4). Throws Fault where there is none, or more. */
export function authorizationOf(request: IncomingMessage): string {
  const header = request.headers.authorization
  if (header === undefined) {
    throw new Fault('token-missing', 'Send the header `Authorization: Bearer` with a token of this bucket.')
  }
  if (timesSent(request, 'authorization') > 1) {
    throw new Fault(
      'authorization-repeated',
      'The request has more than one Authorization header; send exactly one.',
    )
  }
  return header
}

/** The token of an Authorization header (docs/interface.md A1, A2). Throws Fault where there is none. */
export function bearerToken(authorization: string): string {
  const token = credentials.exec(authorization)?.[1]
  if (token === undefined) {
    throw new Fault('token-missing', 'The Authorization header must have the form `Bearer` and a token.')
  }
  return token
}
