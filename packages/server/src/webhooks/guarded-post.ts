import type { ClientRequest, IncomingMessage, Agent as PlainAgent } from 'node:http'
import { request as secureRequest, Agent as TlsAgent } from 'node:https'
import { errorCode } from '../core/faults.ts'
import { version } from '../core/version.ts'
import { parseRetryAfter } from '../core/webhook-rules.ts'
import {
  AddressGuard,
  createNameResolver,
  pinned,
  RefusedAddress,
  type ResolveName,
  unlessAborted,
} from '../http/address-guard.ts'

// An import would load more: see core/node-http.ts.
const http = process.getBuiltinModule('node:http')

/** Milliseconds for a whole request: the lookup of the name, the connection and the response. */
export const requestTimeout = 15_000

/** Bytes of a response that are read, and milliseconds for which they are waited for after its status. */
const maxResponse = 4_096
const bodyTimeout = 1_000

/** What the receiver responded, or why there is no response. */
export interface PostResult {
  /** Null if there is no response. */
  readonly status: number | null
  /** For people; null for a status of 2xx. Has no address. */
  readonly reason: string | null
  /** The first bytes of the response as text. */
  readonly response: string
  /** Milliseconds. */
  readonly duration: number
  /** Milliseconds for which the receiver wants no request; null if it does not say so. */
  readonly retryAfter: number | null
}

/** Sends a body to a receiver. Never rejects. */
export type Post = (
  url: string,
  headers: Readonly<Record<string, string>>,
  body: string,
  signal: AbortSignal,
) => Promise<PostResult>

export interface Poster {
  /** Requests of one sequence use the same connection. Close it at the end of the sequence. */
  open(): { readonly post: Post; close(): void }
}

interface PosterParts {
  readonly allowed: readonly string[]
  readonly resolveName?: ResolveName
  readonly now?: () => number
}

/**
 * Sends requests that reach no address of a private network (docs/interface.md WH9). `allowed` are ranges of addresses that are not refused.
 */
export function createPoster({
  allowed,
  resolveName = createNameResolver(),
  now = Date.now,
}: PosterParts): Poster {
  const guard = new AddressGuard({ isPublicAllowed: true, allowed, resolveName })
  return { open: () => new PosterConnection({ guard, now }) }
}

interface ConnectionParts {
  readonly guard: AddressGuard
  readonly now: () => number
}

/** The requests of one sequence. */
class PosterConnection {
  readonly #parts: ConnectionParts
  /** Agents of their own: the global ones may use a proxy of the environment. */
  readonly #agents = [new http.Agent({ keepAlive: true }), new TlsAgent({ keepAlive: true })] as const

  constructor(parts: ConnectionParts) {
    this.#parts = parts
  }

  /** Bound, because it is handed on alone. */
  readonly post: Post = async (url, headers, body, signal) => {
    const began = performance.now()
    const timeout = AbortSignal.timeout(requestTimeout)
    const ended = AbortSignal.any([timeout, signal])
    const result = await this.#send(url, { headers, body, signal: ended }).catch((error: unknown) => ({
      ...noResponse,
      reason: reasonOf(error, timeout.aborted),
    }))
    return { ...result, duration: Math.round(performance.now() - began) }
  }

  async #send(
    url: string,
    sent: Pick<Exchange, 'headers' | 'body' | 'signal'>,
  ): Promise<Omit<PostResult, 'duration'>> {
    const target = new URL(url)
    const addresses = await unlessAborted(this.#parts.guard.addressesOf(target.hostname), sent.signal)
    const send = () => exchange(target, { ...sent, addresses, agents: this.#agents })
    // A connection that was unused for a while may have been closed by the receiver.
    const { status, text, retryAfter } = await send().catch((error: unknown) => {
      if (!(error instanceof StaleConnection)) throw error
      return send()
    })
    const isDelivered = status >= 200 && status < 300
    return {
      status,
      reason: isDelivered ? null : reasonOfStatus(status),
      response: text,
      retryAfter: parseRetryAfter(retryAfter, this.#parts.now()),
    }
  }

  close(): void {
    for (const agent of this.#agents) agent.destroy()
  }
}

const noResponse = { status: null, response: '', retryAfter: null }

interface Exchange {
  readonly addresses: readonly string[]
  readonly agents: readonly [PlainAgent, TlsAgent]
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
  readonly signal: AbortSignal
}

interface Response {
  readonly status: number
  readonly text: string
  readonly retryAfter: string | undefined
}

/** The receiver closed a connection that had been used before. */
class StaleConnection extends Error {}

/** Sends one request and reads the beginning of its response. Follows no redirect, and stores no cookie. */
function exchange(target: URL, { addresses, agents, headers, body, signal }: Exchange): Promise<Response> {
  const { promise, resolve, reject } = Promise.withResolvers<Response>()
  const isTls = target.protocol === 'https:'
  const options = {
    method: 'POST',
    signal,
    lookup: pinned(addresses),
    headers: {
      ...headers,
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(body),
      'user-agent': `mediabucket/${version}`,
      accept: '*/*',
    },
  }
  const sent: ClientRequest = isTls
    ? secureRequest(target, { ...options, agent: agents[1] })
    : http.request(target, { ...options, agent: agents[0] })
  let hasStatus = false
  sent.on('error', (error) => {
    // The response is read as far as it arrives.
    if (hasStatus) return
    reject(sent.reusedSocket && isReset(error) ? new StaleConnection() : error)
  })
  sent.on('response', (response) => {
    hasStatus = true
    readBeginning(response).then(
      (text) =>
        resolve({ status: response.statusCode ?? 0, text, retryAfter: response.headers['retry-after'] }),
      reject,
    )
  })
  // Without a listener, Node closes the connection without an error.
  sent.on('upgrade', (response, socket) => {
    socket.destroy()
    resolve({ status: response.statusCode ?? 0, text: '', retryAfter: undefined })
  })
  sent.on('close', () => {
    if (!hasStatus) reject(new Error('the connection was closed without a response'))
  })
  sent.end(body)
  return promise
}

const isReset = (error: unknown): boolean => ['ECONNRESET', 'EPIPE'].includes(errorCode(error) ?? '')

/** A response whose status has arrived counts, also if the rest of it does not arrive. A longer or slower one closes its connection. */
async function readBeginning(response: IncomingMessage): Promise<string> {
  const chunks: Uint8Array[] = []
  let size = 0
  const timer = setTimeout(() => response.destroy(), bodyTimeout)
  try {
    for await (const chunk of response) {
      const bytes: Uint8Array = chunk
      chunks.push(bytes.subarray(0, maxResponse - size))
      size += bytes.byteLength
      if (size >= maxResponse) break
    }
  } catch {
    response.destroy()
  } finally {
    clearTimeout(timer)
  }
  return Buffer.concat(chunks).toString()
}

const reasonOfStatus = (status: number): string =>
  status >= 300 && status < 400
    ? `The receiver responded with a redirect (${status}), which is not followed.`
    : `The receiver responded with ${status}.`

/** Without addresses, which may be those of a private network. */
function reasonOf(error: unknown, isTimeout: boolean): string {
  if (error instanceof RefusedAddress)
    return error.isUnknown
      ? error.message
      : 'The host has an address that webhooks must not call, such as one of a private network (MEDIABUCKET_WEBHOOK_ALLOW).'
  if (isTimeout) return `There was no response within ${requestTimeout / 1_000} seconds.`
  const code = errorCode(error) ?? errorCode(firstOf(error))
  return code === null ? 'The request failed.' : `The request failed with ${code}.`
}

/** Of the attempts to connect to each address. */
const firstOf = (error: unknown): unknown => (error instanceof AggregateError ? error.errors[0] : null)
