import type { IncomingMessage } from 'node:http'
import type { BaseLogger } from 'pino'
import type { TokenId } from '../../catalog/records.ts'
import type { Fault, FaultCode } from '../../core/fault.ts'
import type { PeerCounts } from '../../core/peer-counts.ts'
import type { RequestRate } from '../../core/request-rate.ts'
import { HeaderFault } from '../headers/header-fault.ts'
import type { Metrics } from '../metrics/metrics.ts'
import type { ClientAddresses } from './client-address.ts'
import { createRateLimit, type RateLimit } from './rate-limit.ts'

/** The limits of all requests (docs/interface.md, Rate limits). */
export interface RequestLimits {
  /** Counts a request of an address; returns the fault that refuses it, or null if it is accepted. */
  readonly countAddress: (request: IncomingMessage) => Fault | null
  /** Counts a request with a valid token; returns as `countAddress`. */
  readonly countToken: (id: TokenId) => Fault | null
  /** Counts the fault if it refuses an invalid token. Returns the same fault, or `rate-limited` beyond the limit. */
  readonly countAuthFailure: (fault: Fault, request: IncomingMessage) => Fault
}

export interface RateSettings {
  /** Null where there is no limit. */
  readonly tokenRate: RequestRate | null
  readonly addressRate: RequestRate | null
  readonly authFailureRate: RequestRate | null
}

/** The limits: requests of a token, requests of an address, and requests of an address with invalid tokens. */
type LimitName = 'token' | 'address' | 'authentication'

const subjects: Readonly<Record<LimitName, string>> = {
  token: 'This token has sent',
  address: 'This address has sent',
  authentication: 'This address has sent, with invalid tokens,',
}

/**
 * Fault `rate-limited`, with the headers that state when to try again (docs/interface.md W5). `wait` is the time until the next
 * request is accepted. Milliseconds.
 */
function rateLimited(limit: LimitName, { requests, window }: RequestRate, wait: number): HeaderFault {
  const seconds = Math.ceil(wait / 1000)
  const detail = `${subjects[limit]} more than ${requests} requests in ${window / 1000} s. Try again in ${seconds} s.`
  // draft-ietf-httpapi-ratelimit-headers-11. Retry-After alone is sufficient for clients.
  return new HeaderFault('rate-limited', detail, {
    'retry-after': `${seconds}`,
    'ratelimit-policy': `"${limit}";q=${requests};w=${window / 1000}`,
    ratelimit: `"${limit}";r=0;t=${seconds}`,
  })
}

/** `token-missing` is not counted: a request without a token is no guess. */
const refusedTokens: ReadonlySet<FaultCode> = new Set([
  'token-malformed',
  'token-unknown',
  'token-expired',
  'token-revoked',
  'token-refused',
])

export function createRequestLimits(
  { tokenRate, addressRate, authFailureRate }: RateSettings,
  parts: {
    readonly addresses: ClientAddresses
    readonly metrics: Pick<Metrics, 'limitedRequests'>
    readonly log: Pick<BaseLogger, 'warn'>
    readonly peers: PeerCounts
  },
): RequestLimits {
  const { addresses, metrics, log, peers } = parts
  const limitOf = (name: LimitName, rate: RequestRate | null) => {
    const limit = rate && createRateLimit(rate)
    if (limit) peers.subscribe(name, limit.add)
    return limit
  }
  const tokens = limitOf('token', tokenRate)
  const clients = limitOf('address', addressRate)
  const failures = limitOf('authentication', authFailureRate)

  let hasWarned = false
  /** All clients behind an untrusted proxy share its address, so the operator is warned once. */
  function warnAboutProxy({ headers, socket }: IncomingMessage) {
    if (hasWarned || headers['x-forwarded-for'] === undefined || addresses.ofConnection(socket) === null)
      return
    hasWarned = true
    log.warn(
      { peer: socket.remoteAddress },
      'a rate limit was exceeded by requests with X-Forwarded-For from a peer that is not in MEDIABUCKET_TRUSTED_PROXIES; if it is your reverse proxy, add it',
    )
  }

  function take(name: LimitName, limit: RateLimit, key: string, request: IncomingMessage | null) {
    const wait = limit.take(key)
    if (wait === 0) {
      peers.add(name, key, 1)
      return null
    }
    metrics.limitedRequests.inc({ limit: name })
    if (request) warnAboutProxy(request)
    return rateLimited(name, limit.rate, wait)
  }

  return {
    countAddress(request) {
      return clients && take('address', clients, addresses.ofRequest(request), request)
    },
    countToken(id) {
      return tokens && take('token', tokens, id, null)
    },
    // Called after the token lookup, so that guesses do not lock out valid tokens behind the same address. All invalid
    // tokens get the same response.
    countAuthFailure(fault, request) {
      if (failures === null || !refusedTokens.has(fault.code)) return fault
      return take('authentication', failures, addresses.ofRequest(request), request) ?? fault
    },
  }
}
