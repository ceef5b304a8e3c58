import type { IncomingMessage } from 'node:http'
import type { FastifyBaseLogger } from 'fastify'
import type { TokenId } from '../../catalog/catalog.ts'
import type { Fault, FaultCode } from '../../core/fault.ts'
import type { RequestRate } from '../../core/request-rate.ts'
import type { Metrics } from '../metrics/metrics.ts'
import type { ClientAddresses } from './client-address.ts'
import { createRateLimit, type RateLimit } from './rate-limit.ts'
import { type LimitName, RateLimitFault } from './rate-limit-fault.ts'

/** The limits of all requests (docs/interface.md, Rate limits). */
export interface RequestLimits {
  /** Counts a request of an address; returns why it is refused, null where it is accepted. */
  readonly countAddress: (request: IncomingMessage) => RateLimitFault | null
  /** The same for a request of a valid token. */
  readonly countToken: (id: TokenId) => RateLimitFault | null
  /** Counts the fault if it refuses a token, and returns the fault to answer. */
  readonly countAuthFailure: (fault: Fault, request: IncomingMessage) => Fault
}

export interface RateSettings {
  /** Null where there is no limit. */
  readonly tokenRate: RequestRate | null
  readonly addressRate: RequestRate | null
  readonly authFailureRate: RequestRate | null
}

/** A request without a token guesses nothing. */
const refusedTokens: ReadonlySet<FaultCode> = new Set([
  'token-malformed',
  'token-unknown',
  'token-expired',
  'token-revoked',
])

export function createRequestLimits(
  { tokenRate, addressRate, authFailureRate }: RateSettings,
  parts: {
    readonly addresses: ClientAddresses
    readonly metrics: Pick<Metrics, 'limitedRequests'>
    readonly log: Pick<FastifyBaseLogger, 'warn'>
  },
): RequestLimits {
  const { addresses, metrics, log } = parts
  const limitOf = (rate: RequestRate | null) => rate && createRateLimit(rate)
  const tokens = limitOf(tokenRate)
  const clients = limitOf(addressRate)
  const failures = limitOf(authFailureRate)

  let warned = false
  /** Behind a proxy that is not trusted, all clients have one address. The operator should know. */
  function warnOfProxy({ headers, socket }: IncomingMessage) {
    if (warned || headers['x-forwarded-for'] === undefined || addresses.ofConnection(socket) === null) return
    warned = true
    log.warn(
      { peer: socket.remoteAddress },
      'a rate limit was exceeded by requests with X-Forwarded-For from a peer that is not in MEDIABUCKET_TRUSTED_PROXIES; if it is your reverse proxy, add it',
    )
  }

  function take(name: LimitName, limit: RateLimit, key: string, request: IncomingMessage | null) {
    const wait = limit.take(key)
    if (wait === 0) return null
    metrics.limitedRequests.inc({ limit: name })
    if (request) warnOfProxy(request)
    return new RateLimitFault(name, limit.rate, wait)
  }

  return {
    countAddress(request) {
      return clients && take('address', clients, addresses.ofRequest(request), request)
    },
    countToken(id) {
      return tokens && take('token', tokens, id, null)
    },
    // The token is looked up before: valid ones pass, so a guesser behind a shared address locks nobody out. All
    // others get one and the same answer.
    countAuthFailure(fault, request) {
      if (failures === null || !refusedTokens.has(fault.code)) return fault
      return take('authentication', failures, addresses.ofRequest(request), request) ?? fault
    },
  }
}
