import { httpUrl } from './http-url.ts'
import { type RetryOptions, retryPolicy } from './retry.ts'
import type { Sending } from './send.ts'
import { fetchTransport } from './transport.ts'

/** How a client is made. */
export interface ClientOptions {
  /**
   * The service: its base URL, which may have a path (`https://example.org/box`), or the URL of its listing
   * (`…/api/media` or `…/v1/media`, with or without a slash at the end), which is then used as it is.
   */
  readonly url: string | URL
  /** The bearer token. It is sent to the origin of `url` and to no other. */
  readonly token: string
  /** How calls are repeated that fail for the moment. */
  readonly retry?: RetryOptions | undefined
  /**
   * Milliseconds of silence after which a try has failed; never a limit for a whole transfer. `Infinity` waits for
   * ever (in Node.js, its own fetch gives up after 300 000). Default: 60 000.
   */
  readonly timeout?: number | undefined
  /** A fetch to use instead of the platform's. With it, uploads in browsers report progress at their end alone. */
  readonly fetch?: typeof globalThis.fetch | undefined
}

/** The options as they are used; throws a `TypeError` for those that make no sense. */
export function sendingOf({ url, token, retry, timeout = 60_000, fetch }: ClientOptions): Sending {
  // Checked here because the error of Headers would repeat the token.
  if (typeof token !== 'string' || !/^[\x21-\x7e]+$/.test(token)) {
    throw new TypeError('token must be a bearer token: visible ASCII characters without spaces')
  }
  if (!(timeout > 0)) throw new TypeError('timeout must be milliseconds above 0')
  return {
    credential: { token, origin: httpUrl(url, 'url').origin },
    retry: retryPolicy(retry),
    timeout,
    // Looked up at each call, so that a fetch that is replaced later (by a tracer, by a test) is used.
    transport: fetchTransport(fetch ?? ((input, init) => globalThis.fetch(input, init))),
    platformFetch: fetch === undefined,
  }
}
