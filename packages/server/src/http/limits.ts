import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { isDeepStrictEqual } from 'node:util'
import type { BaseLogger } from 'pino'
import type { Fault, FaultCode } from '../core/faults.ts'
import { addressFamily, addressGroup, inRanges, plainAddress } from '../core/ip-address.ts'
import type { PeerCounts } from '../core/peer-counts.ts'
import type { RequestRate } from '../core/times.ts'
import type { TokenId } from '../storage/catalog/records.ts'
import { HeaderFault } from './headers.ts'
import type { Metrics } from './metrics.ts'

/** The limits of all requests (docs/interface.md, Rate limits). */
export interface RequestLimits {
  /** Counts a request of an address; returns the fault that refuses it, or null if it is accepted. */
  readonly countAddress: (request: IncomingMessage) => Fault | null
  /** Counts a request with a valid token; returns as `countAddress`. */
  readonly countToken: (id: TokenId) => Fault | null
  /** Counts the fault if it refuses an invalid token. Returns the same fault, or `rate-limited` beyond the limit. */
  readonly countAuthFailure: (fault: Fault, request: IncomingMessage) => Fault
  /** Changes the rates. Those that stay the same keep their counts. */
  readonly setRates: (rates: RateSettings) => void
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
const refusals: ReadonlySet<FaultCode> = new Set([
  'token-malformed',
  'token-unknown',
  'token-expired',
  'token-revoked',
  'token-refused',
])

/** Whether the fault refuses the token that a request has. */
export const isTokenRefusal = ({ code }: Fault): boolean => refusals.has(code)

/** Milliseconds, and addresses that are reported in them. */
const reportInterval = 60_000
const maxReported = 10

export function createRequestLimits(
  rates: RateSettings,
  parts: {
    readonly addresses: ClientAddresses
    readonly metrics: Pick<Metrics, 'limitedRequests'>
    readonly log: Pick<BaseLogger, 'warn'>
    /** Null for a service of one process. */
    readonly peers: PeerCounts | null
  },
): RequestLimits {
  const { addresses, metrics, log, peers } = parts
  const limitOf = (name: LimitName, rate: RequestRate | null, before: RateLimit | null = null) => {
    if (isDeepStrictEqual(rate, before?.rate ?? null)) return before
    const limit = rate && createRateLimit(rate)
    if (limit) peers?.subscribe(name, limit.add)
    return limit
  }
  let tokens = limitOf('token', rates.tokenRate)
  let clients = limitOf('address', rates.addressRate)
  let failures = limitOf('authentication', rates.authFailureRate)

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
      peers?.add(name, key, 1)
      return null
    }
    metrics.limitedRequests.inc({ limit: name })
    if (request) warnAboutProxy(request)
    return rateLimited(name, limit.rate, wait)
  }

  let reported = new Set<string>()
  let reportedSince = 0
  /** Some addresses a minute, each once: the lines of their requests have what a firewall or the owner of a token needs. */
  function reportGuesses(request: IncomingMessage) {
    const now = performance.now()
    if (now - reportedSince > reportInterval) {
      reported = new Set()
      reportedSince = now
    }
    const address = addresses.wholeOfRequest(request) ?? 'unknown'
    if (reported.has(address) || reported.size >= maxReported) return
    reported.add(address)
    log.warn(
      { address },
      'an address sends more invalid tokens than MEDIABUCKET_AUTH_FAILURE_RATE; the lines of its requests have the token, or its fingerprint',
    )
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
      if (failures === null || !isTokenRefusal(fault)) return fault
      const refusal = take('authentication', failures, addresses.ofRequest(request), request)
      if (refusal) reportGuesses(request)
      return refusal ?? fault
    },
    setRates({ tokenRate, addressRate, authFailureRate }) {
      tokens = limitOf('token', tokenRate, tokens)
      clients = limitOf('address', addressRate, clients)
      failures = limitOf('authentication', authFailureRate, failures)
    },
  }
}

/** The time at which a key may make all requests of its quota again. Milliseconds of the monotonic clock. */
interface Entry {
  fullAt: number
}

/** A rate limit that counts each key separately. */
export interface RateLimit {
  readonly rate: RequestRate
  /** Returns 0 and counts the request, or returns the milliseconds until the next one is accepted. Refused requests do not count. */
  readonly take: (key: string) => number
  /** Counts requests that another process has accepted. */
  readonly add: (key: string, requests: number) => void
}

/** Keys of one generation. There are two generations, so memory is limited to a few megabytes. */
const keysPerGeneration = 20_000

/**
 * The generic cell rate algorithm: `requests` at once, refilled evenly over `window`. Unused keys are dropped after two
 * generations and start with a full quota again.
 */
export function createRateLimit(
  rate: RequestRate,
  now: () => number = () => performance.now(),
  maxKeys = keysPerGeneration,
): RateLimit {
  const { requests, window } = rate
  const perRequest = window / requests
  let current = new Map<string, Entry>()
  let previous = new Map<string, Entry>()

  function entryOf(key: string, at: number): Entry {
    const known = current.get(key)
    if (known) return known
    const entry = previous.get(key) ?? { fullAt: at }
    if (current.size >= maxKeys) {
      previous = current
      current = new Map()
    }
    current.set(key, entry)
    return entry
  }

  return {
    rate,
    take(key) {
      const at = now()
      const entry = entryOf(key, at)
      const fullAt = Math.max(entry.fullAt, at) + perRequest
      const wait = fullAt - at - window
      // Tolerates rounding errors of less than a thousandth of a millisecond.
      if (wait > 0.001) return wait
      entry.fullAt = fullAt
      return 0
    },
    add(key, requests) {
      const at = now()
      const entry = entryOf(key, at)
      entry.fullAt = Math.max(entry.fullAt, at) + requests * perRequest
    },
  }
}

/** The addresses of clients. They are used for limits and the audit log, never in URLs (docs/interface.md L18, W1, Y2). */
export interface ClientAddresses {
  /** An IPv4 address, or the /64 of an IPv6 address. */
  readonly ofRequest: (request: IncomingMessage) => string
  /** The whole address; null if it is unknown. */
  readonly wholeOfRequest: (request: IncomingMessage) => string | null
  /** The same for a connection; null for a trusted proxy, whose connections carry requests of many clients. */
  readonly ofConnection: (socket: Socket) => string | null
}

/** The peer of a connection. */
interface Peer {
  readonly address: string | null
  readonly group: string
  readonly isProxy: boolean
}

/** The group of closed sockets and of sockets other than TCP, which have no address. */
const unknown = 'unknown'

/** `proxies` are addresses, CIDR ranges and range names (core/ip-address.ts). */
export function createClientAddresses(proxies: readonly string[]): ClientAddresses {
  const isProxy = inRanges(proxies)
  const peers = new WeakMap<Socket, Peer>()

  function peerOf(socket: Socket): Peer {
    const known = peers.get(socket)
    if (known) return known
    const address = socket.remoteAddress
    if (address === undefined) return { address: null, group: unknown, isProxy: false }
    const peer = { address: plainAddress(address), group: addressGroup(address), isProxy: isProxy(address) }
    peers.set(socket, peer)
    return peer
  }

  /** The address in the headers of a trusted proxy; null if the peer is the client. */
  const forwardedFor = (peer: Peer, { headers }: IncomingMessage): string | null =>
    peer.isProxy ? clientOf(headers['x-forwarded-for']?.toString() ?? '', isProxy) : null

  return {
    ofRequest(request) {
      const peer = peerOf(request.socket)
      const client = forwardedFor(peer, request)
      return client === null ? peer.group : addressGroup(client)
    },
    wholeOfRequest(request) {
      const peer = peerOf(request.socket)
      const client = forwardedFor(peer, request)
      return client === null ? peer.address : plainAddress(client)
    },
    ofConnection(socket) {
      const peer = peerOf(socket)
      return peer.isProxy ? null : peer.group
    },
  }
}

/**
 * Returns the right-most entry of X-Forwarded-For that is not a trusted proxy, or the left-most one where all are; null
 * where an entry up to there is not an address. Entries further left come from the client and are not trustworthy.
 */
function clientOf(header: string, isProxy: (address: string) => boolean): string | null {
  let client: string | null = null
  for (let end = header.length; end >= 0; ) {
    const comma = end === 0 ? -1 : header.lastIndexOf(',', end - 1)
    const address = addressOf(header.slice(comma + 1, end).trim())
    if (address === null) return null
    client = address
    if (!isProxy(address)) return client
    end = comma
  }
  return client
}

/** The address of an entry; some proxies append a port. */
function addressOf(entry: string): string | null {
  if (addressFamily(entry) !== 0) return entry
  const address = /^\[([^\]]+)\](?::\d{1,5})?$/.exec(entry)?.[1] ?? /^([\d.]+):\d{1,5}$/.exec(entry)?.[1]
  return address !== undefined && addressFamily(address) !== 0 ? address : null
}
