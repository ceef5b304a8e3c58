import { type RetryOptions, retryPolicy } from './retry.ts'
import type { SendSettings } from './send.ts'
import { requireToken } from './send.ts'
import { fetchTransport } from './transport.ts'
import { httpUrl } from './urls.ts'

/** The options of every call. */
export interface CallOptions {
  /** Aborts the call at any time, also between attempts. The call rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined
}

/** The options of a download. */
export interface GetOptions extends CallOptions {
  /**
   * Continues a download that broke off after `offset` bytes, whose response had this strong `ETag`. The response has the rest of the
   * bytes and the status 206, or all bytes and the status 200 if they have changed or the server sends no ranges.
   */
  readonly resumeFrom?: { readonly offset: number; readonly etag: string } | undefined
  /** Only the first bytes, at most this many: the status is 206, or 200 with all bytes if the server sends no ranges. */
  readonly firstBytes?: number | undefined
  /**
   * Whether the request has the token, if the URL has the client's origin. Without it, shared caches can store the response: use that for
   * URLs of a public bucket and signed URLs. Default: true.
   */
  readonly withToken?: boolean | undefined
}

/** The options of a client. */
export interface ClientOptions {
  /**
   * The service: its base URL, which may have a path (`https://example.org/box`), or the URL of its listing
   * (`…/api/media` or `…/v1/media`, with or without a slash at the end), which is then used unchanged.
   */
  readonly url: string | URL
  /**
   * The bearer token, or a function that returns the current token. Use a function if the token is renewed, as JWTs of an issuer are. The
   * client calls it before each request. An error that it throws rejects the call. The token is sent only to the origin of `url`.
   */
  readonly token: string | (() => string | Promise<string>)
  /** The name of the bucket, for a token of the service. A token of a bucket needs none. */
  readonly bucket?: string | undefined
  /** How calls that fail temporarily are retried. */
  readonly retry?: RetryOptions | undefined
  /**
   * Milliseconds without data after which an attempt fails. It does not limit a whole transfer. `Infinity` disables the
   * timeout (but the fetch of Node.js gives up after 300 000). Default: 60 000.
   */
  readonly timeout?: number | undefined
  /** Replaces the platform's fetch. With it, uploads in browsers report progress only at their end. */
  readonly fetch?: typeof globalThis.fetch | undefined
}

/** Validates the options and adds the defaults. Throws a `TypeError` for invalid options. */
export function sendSettings(options: ClientOptions): SendSettings {
  // For callers without types.
  if (typeof options !== 'object' || options === null)
    throw new TypeError('createClient takes { url, token }: the URL of the service and a bearer token')
  const { url, token, bucket, retry, timeout = 60_000, fetch } = options
  const source = typeof token === 'function' ? token : () => token
  if (typeof token !== 'function') requireToken(token)
  if (!(timeout > 0)) throw new TypeError('timeout must be milliseconds above 0')
  if (bucket !== undefined && !/^[!-~]+$/.test(bucket))
    throw new TypeError('bucket must be the name of a bucket')
  return {
    credential: { token: source, bucket, origin: httpUrl(url, 'url').origin },
    retry: retryPolicy(retry),
    timeout,
    // Read for each call, so that a global fetch that is replaced later (by a tracer or a test) is used.
    transport: fetchTransport(fetch ?? ((input, init) => globalThis.fetch(input, init))),
    platformFetch: fetch === undefined,
  }
}
