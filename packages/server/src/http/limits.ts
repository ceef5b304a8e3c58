import { timingSafeEqual } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { isDeepStrictEqual } from 'node:util'
import type { BaseLogger } from 'pino'
import type { Fault, FaultCode } from '../core/faults.ts'
import { addressFamily, addressGroup, inRanges, plainAddress } from '../core/ip-address.ts'
import type { PeerCounts } from '../core/peer-counts.ts'
import type { RequestRate } from '../core/times.ts'
import { HeaderFault } from './headers.ts'
import type { Metrics } from './metrics.ts'

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

interface RequestLimitsParts {
  readonly addresses: ClientAddresses
  readonly metrics: Pick<Metrics, 'limitedRequests'>
  readonly log: Pick<BaseLogger, 'warn'>
  /** Null for a service of one process. */
  readonly peers: PeerCounts | null
}

/** The limits of all requests (docs/interface.md, Rate limits). */
export class RequestLimits {
  readonly #parts: RequestLimitsParts
  #tokens: RateLimit | null
  #clients: RateLimit | null
  #failures: RateLimit | null
  #hasWarnedAboutProxy = false
  #reported = new Set<string>()
  #reportedSince = 0

  constructor({ tokenRate, addressRate, authFailureRate }: RateSettings, parts: RequestLimitsParts) {
    this.#parts = parts
    this.#tokens = this.#limitOf('token', tokenRate, null)
    this.#clients = this.#limitOf('address', addressRate, null)
    this.#failures = this.#limitOf('authentication', authFailureRate, null)
  }

  /** Changes the rates. Those that stay the same keep their counts. */
  setRates({ tokenRate, addressRate, authFailureRate }: RateSettings): void {
    this.#tokens = this.#limitOf('token', tokenRate, this.#tokens)
    this.#clients = this.#limitOf('address', addressRate, this.#clients)
    this.#failures = this.#limitOf('authentication', authFailureRate, this.#failures)
  }

  #limitOf(name: LimitName, rate: RequestRate | null, before: RateLimit | null): RateLimit | null {
    if (isDeepStrictEqual(rate, before?.rate ?? null)) return before
    if (rate === null) return null
    const limit = new RateLimit(rate)
    this.#parts.peers?.subscribe(name, (key, requests) => limit.add(key, requests))
    return limit
  }

  /** Counts a request of an address; returns the fault that refuses it, or null if it is accepted. */
  countAddress(request: IncomingMessage): Fault | null {
    if (this.#clients === null) return null
    return this.#take('address', this.#clients, this.#parts.addresses.ofRequest(request), request)
  }

  /** Counts a request with a valid token; returns as `countAddress`. Bound, because routes hand it on alone. */
  readonly countToken = (id: string): Fault | null =>
    this.#tokens && this.#take('token', this.#tokens, id, null)

  /**
   * Counts the fault if it refuses an invalid token. Returns the same fault, or `rate-limited` beyond the limit. Call it after the
   * token lookup, so that guesses do not lock out valid tokens behind the same address. All invalid tokens get the same response.
   */
  countAuthFailure(fault: Fault, request: IncomingMessage): Fault {
    if (this.#failures === null || !isTokenRefusal(fault)) return fault
    const address = this.#parts.addresses.ofRequest(request)
    const refusal = this.#take('authentication', this.#failures, address, request)
    if (refusal) this.#reportGuesses(request)
    return refusal ?? fault
  }

  #take(name: LimitName, limit: RateLimit, key: string, request: IncomingMessage | null): Fault | null {
    const wait = limit.take(key)
    if (wait === 0) {
      this.#parts.peers?.add(name, key, 1)
      return null
    }
    this.#parts.metrics.limitedRequests.inc({ limit: name })
    if (request) this.#warnAboutProxy(request)
    return rateLimited(name, limit.rate, wait)
  }

  /** All clients behind an untrusted proxy share its address, so the operator is warned once. */
  #warnAboutProxy({ headers, socket }: IncomingMessage): void {
    const { addresses, log } = this.#parts
    if (this.#hasWarnedAboutProxy || headers['x-forwarded-for'] === undefined) return
    if (addresses.ofConnection(socket) === null) return
    this.#hasWarnedAboutProxy = true
    log.warn(
      { peer: socket.remoteAddress },
      'a rate limit was exceeded by requests with X-Forwarded-For from a peer that is not in MEDIABUCKET_TRUSTED_PROXIES; if it is your reverse proxy, add it',
    )
  }

  /** Some addresses a minute, each once: the lines of their requests have what a firewall or the owner of a token needs. */
  #reportGuesses(request: IncomingMessage): void {
    const { addresses, log } = this.#parts
    const now = performance.now()
    if (now - this.#reportedSince > reportInterval) {
      this.#reported = new Set()
      this.#reportedSince = now
    }
    const address = addresses.wholeOfRequest(request) ?? 'unknown'
    if (this.#reported.has(address) || this.#reported.size >= maxReported) return
    this.#reported.add(address)
    log.warn(
      { address },
      'an address sends more invalid tokens than MEDIABUCKET_AUTH_FAILURE_RATE; the lines of its requests have the token, or its fingerprint',
    )
  }
}

/** The time at which a key may make all requests of its quota again. Milliseconds of the monotonic clock. */
interface Entry {
  fullAt: number
}

/** Keys of one generation. There are two generations, so memory is limited to a few megabytes. */
const keysPerGeneration = 20_000

/**
 * A rate limit that counts each key separately. The generic cell rate algorithm: `requests` at once, refilled evenly over `window`.
 * Unused keys are dropped after two generations and start with a full quota again.
 */
export class RateLimit {
  readonly rate: RequestRate
  /** Milliseconds in which the quota for one request is refilled. */
  readonly #perRequest: number
  readonly #now: () => number
  readonly #maxKeys: number
  #current = new Map<string, Entry>()
  #previous = new Map<string, Entry>()

  constructor(rate: RequestRate, now = () => performance.now(), maxKeys = keysPerGeneration) {
    this.rate = rate
    this.#perRequest = rate.window / rate.requests
    this.#now = now
    this.#maxKeys = maxKeys
  }

  /** Returns 0 and counts the request, or returns the milliseconds until the next one is accepted. Refused requests do not count. */
  take(key: string): number {
    const at = this.#now()
    const entry = this.#entryOf(key, at)
    const fullAt = Math.max(entry.fullAt, at) + this.#perRequest
    const wait = fullAt - at - this.rate.window
    // Tolerates rounding errors of less than a thousandth of a millisecond.
    if (wait > 0.001) return wait
    entry.fullAt = fullAt
    return 0
  }

  /** Counts requests that another process has accepted. */
  add(key: string, requests: number): void {
    const at = this.#now()
    const entry = this.#entryOf(key, at)
    entry.fullAt = Math.max(entry.fullAt, at) + requests * this.#perRequest
  }

  #entryOf(key: string, at: number): Entry {
    const known = this.#current.get(key)
    if (known) return known
    const entry = this.#previous.get(key) ?? { fullAt: at }
    if (this.#current.size >= this.#maxKeys) {
      this.#previous = this.#current
      this.#current = new Map()
    }
    this.#current.set(key, entry)
    return entry
  }
}

/** The peer of a connection. */
interface Peer {
  readonly address: string | null
  readonly group: string
  readonly isProxy: boolean
}

/** The group of closed sockets and of sockets other than TCP, which have no address. */
const unknown = 'unknown'

/** The addresses of clients. They are used for limits and the audit log, never in URLs (docs/interface.md L18, W1, Y2). */
export class ClientAddresses {
  readonly #isProxy: (address: string) => boolean
  readonly #ownSecret: string | null
  readonly #peers = new WeakMap<Socket, Peer>()

  /** `proxies` are addresses, CIDR ranges and range names (core/ip-address.ts); `ownSecret` is null for a service that sends itself no requests. */
  constructor(proxies: readonly string[], ownSecret: string | null) {
    this.#isProxy = inRanges(proxies)
    this.#ownSecret = ownSecret
  }

  /** An IPv4 address, or the /64 of an IPv6 address. */
  ofRequest(request: IncomingMessage): string {
    const peer = this.#peerOf(request.socket)
    const client = this.#forwardedFor(peer, request)
    return client === null ? peer.group : addressGroup(client)
  }

  /** The whole address; null if it is unknown. Bound, because routes hand it on alone. */
  readonly wholeOfRequest = (request: IncomingMessage): string | null => {
    const peer = this.#peerOf(request.socket)
    const client = this.#forwardedFor(peer, request)
    return client === null ? peer.address : plainAddress(client)
  }

  /** The address of a connection, as `ofRequest`; null for a trusted proxy, whose connections carry requests of many clients. */
  ofConnection(socket: Socket): string | null {
    const peer = this.#peerOf(socket)
    return peer.isProxy ? null : peer.group
  }

  #peerOf(socket: Socket): Peer {
    const known = this.#peers.get(socket)
    if (known) return known
    const address = socket.remoteAddress
    if (address === undefined) return { address: null, group: unknown, isProxy: false }
    const isProxy = this.#isProxy(address)
    const peer = { address: plainAddress(address), group: addressGroup(address), isProxy }
    this.#peers.set(socket, peer)
    return peer
  }

  /** The address in the headers of a trusted proxy, or of the service itself; null if the peer is the client. */
  #forwardedFor(peer: Peer, { headers }: IncomingMessage): string | null {
    const own = this.#ownSecret === null ? undefined : headers[ownClientHeader]
    if (this.#ownSecret !== null && typeof own === 'string') {
      const client = ownClientOf(this.#ownSecret, own)
      if (client !== null) return client
    }
    return peer.isProxy ? clientOf(headers['x-forwarded-for']?.toString() ?? '', this.#isProxy) : null
  }
}

/** The header of a request of the service to itself: its secret, and the address of the client that it is sent for. */
export const ownClientHeader = 'mediabucket-own-client'

export const ownClientValue = (secret: string, client: string): string => `${secret} ${client}`

function ownClientOf(secret: string, value: string): string | null {
  const [stated, expected] = [Buffer.from(value.slice(0, secret.length)), Buffer.from(secret)]
  if (stated.length !== expected.length || !timingSafeEqual(stated, expected)) return null
  return value.slice(secret.length + 1)
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
