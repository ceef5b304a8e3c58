import { createLocalJWKSet, errors, type JWTVerifyGetKey } from 'jose'
import { Fault } from '../core/faults.ts'
import { type Claims, type IssuerSettings, isClaims, isIssuerUrl } from '../core/issuer.ts'

/** Keys of this age are used, and requested again in the background. Milliseconds. */
const refreshAfter = 4 * 60_000

/** Keys of this age are requested again before they are used. Milliseconds. */
const staleAfter = 5 * 60_000

/** Keys of this age are not used, even if the issuer cannot be reached: it may have withdrawn them. Milliseconds. */
const maxAge = 24 * 3_600_000

/** After a successful request that an unknown key has caused. Milliseconds. */
const unknownKeyPause = 30_000

/** After a failed request. Milliseconds. */
const failurePause = 5_000

interface Loaded {
  readonly find: JWTVerifyGetKey
  readonly discovery: Discovery | null
  readonly at: number
}

/**
 * The public keys of an issuer, in memory. They stay in use while the issuer cannot be reached, for up to a day. A token with an unknown
 * key causes a request to the issuer, at most one in 30 seconds, and after a failed one at most one in 5 seconds.
 */
export class IssuerKeys {
  readonly #settings: KeySettings
  readonly #parts: KeyParts
  #loaded: Loaded | null = null
  #loading: Promise<void> | null = null
  #failedAt = Number.NEGATIVE_INFINITY
  #unknownAt = Number.NEGATIVE_INFINITY

  constructor(settings: KeySettings, parts: KeyParts) {
    this.#settings = settings
    this.#parts = parts
  }

  /**
   * Finds the key of a token. Throws Fault `issuer-unavailable` if there are no keys, or if the key is unknown and the current keys cannot be
   * requested, and errors of jose.
   */
  async find(...[header, token]: Parameters<JWTVerifyGetKey>): Promise<Awaited<ReturnType<JWTVerifyGetKey>>> {
    const keys = await this.#usable()
    try {
      return await keys.find(header, token)
    } catch (error) {
      if (!(error instanceof errors.JWKSNoMatchingKey) || this.#isPaused()) throw error
    }
    if (!this.#hasFailed()) await this.refresh()
    // The key may be a new one.
    if (this.#loaded === null || this.#loaded === keys) throw unavailable()
    this.#unknownAt = this.#parts.now()
    return this.#loaded.find(header, token)
  }

  /** Requests the keys. Resolves also after a failure, which has been reported. */
  refresh(): Promise<void> {
    this.#loading ??= this.#load()
    return this.#loading
  }

  /** The discovery document as it was last received; null if it was not yet, or is not used. */
  discovery(): Discovery | null {
    // Possibly no token was sent since the issuer is available again.
    if (this.#loaded === null && !this.#hasFailed()) void this.refresh()
    return this.#loaded?.discovery ?? null
  }

  async #load(): Promise<void> {
    const { issuer, jwksUrl, signIn } = this.#settings
    const { now, onFailure, onSuccess } = this.#parts
    try {
      const discovery = jwksUrl === null || signIn !== null ? await discover(issuer) : null
      const find = createLocalJWKSet(keySet(await fetchJson(jwksUrl ?? discovery?.jwksUrl ?? '')))
      this.#loaded = { find, discovery, at: now() }
      onSuccess()
    } catch (error) {
      this.#failedAt = now()
      onFailure(error)
    } finally {
      this.#loading = null
    }
  }

  async #usable(): Promise<Loaded> {
    const age = this.#ageOf(this.#loaded)
    // While the issuer cannot be reached, only the first request waits for it.
    const isReachable = this.#loaded === null || this.#failedAt < this.#loaded.at
    if (age >= refreshAfter && !this.#hasFailed()) {
      const refreshing = this.refresh()
      if (age >= maxAge || (age >= staleAfter && isReachable)) await refreshing
    }
    if (this.#loaded !== null && this.#ageOf(this.#loaded) < maxAge) return this.#loaded
    throw unavailable()
  }

  /** A clock that is set back does not prolong a pause. */
  #hasFailed(): boolean {
    return this.#loading === null && Math.abs(this.#parts.now() - this.#failedAt) < failurePause
  }

  #isPaused(): boolean {
    return this.#loading === null && Math.abs(this.#parts.now() - this.#unknownAt) < unknownKeyPause
  }

  /** A clock that is set back makes keys old. */
  #ageOf(keys: Loaded | null): number {
    return keys === null ? maxAge : Math.abs(this.#parts.now() - keys.at)
  }
}

type KeySettings = Pick<IssuerSettings, 'issuer' | 'jwksUrl' | 'signIn'>

interface KeyParts {
  readonly now: () => number
  /** Receives the error of each failed request. */
  readonly onFailure: (error: unknown) => void
  readonly onSuccess: () => void
}

const unavailable = (): Fault =>
  new Fault(
    'issuer-unavailable',
    'This token of the issuer cannot be verified at the moment, because the keys of the issuer cannot be requested.',
  )

function keySet(document: unknown): { keys: object[] } {
  const keys: unknown = isClaims(document) ? document['keys'] : null
  if (!Array.isArray(keys) || !keys.every(isClaims)) throw new Error('the key set of the issuer has no keys')
  return { keys }
}

/** The discovery document of an issuer (OpenID Connect Discovery 1.0). */
export interface Discovery {
  readonly document: Claims
  readonly jwksUrl: string
}

/** Gets the discovery document. Throws an Error if it is that of another issuer, or names no keys. */
async function discover(issuer: string): Promise<Discovery> {
  const url = `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`
  const document = await fetchJson(url)
  if (!isClaims(document)) throw new Error(`${url} is no discovery document`)
  if (document['issuer'] !== issuer)
    throw new Error(`${url} is the discovery document of another issuer than ${issuer}`)
  const jwksUrl = urlOf(document, 'jwks_uri')
  if (jwksUrl === null) throw new Error(`${url} has no member jwks_uri with an https URL`)
  return { document, jwksUrl }
}

/** The member of the document; null if it is not a URL that can be used. */
function urlOf(document: Claims, name: string): string | null {
  const url = document[name]
  return typeof url === 'string' && isIssuerUrl(url) ? url : null
}

/** What a client in the browser needs of the document; null if the issuer has no authorization code flow. */
export function clientMetadata(issuer: string, { document }: Discovery): ClientMetadata | null {
  const authorizationEndpoint = urlOf(document, 'authorization_endpoint')
  const tokenEndpoint = urlOf(document, 'token_endpoint')
  if (authorizationEndpoint === null || tokenEndpoint === null) return null
  const revocationEndpoint = urlOf(document, 'revocation_endpoint')
  const algorithms = document['id_token_signing_alg_values_supported']
  return {
    issuer,
    authorization_endpoint: authorizationEndpoint,
    token_endpoint: tokenEndpoint,
    ...(revocationEndpoint !== null && { revocation_endpoint: revocationEndpoint }),
    id_token_signing_alg_values_supported: Array.isArray(algorithms)
      ? algorithms.filter((name) => typeof name === 'string')
      : [],
    authorization_response_iss_parameter_supported:
      document['authorization_response_iss_parameter_supported'] === true,
  }
}

/** Members of the discovery document, with their names. */
export interface ClientMetadata {
  readonly issuer: string
  readonly authorization_endpoint: string
  readonly token_endpoint: string
  readonly revocation_endpoint?: string
  readonly id_token_signing_alg_values_supported: readonly string[]
  readonly authorization_response_iss_parameter_supported: boolean
}

/** Milliseconds for the whole response. */
const timeout = 5_000

/** Bytes. The documents of issuers have some kilobytes. */
const maxSize = 512 * 1024

/** Gets a JSON document. Follows no redirect, and reads no more than half a megabyte. Throws an Error without data of the response. */
async function fetchJson(url: string): Promise<unknown> {
  const response = await fetch(url, {
    // A connection that was kept open may be closed by the issuer at the moment of the next request.
    headers: { accept: 'application/json', connection: 'close' },
    redirect: 'error',
    signal: AbortSignal.timeout(timeout),
  })
  if (!response.ok) {
    await response.body?.cancel()
    throw new Error(`${url} responded with status ${response.status}`)
  }
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of response.body ?? []) {
    size += chunk.byteLength
    if (size > maxSize) throw new Error(`${url} responded with more than ${maxSize} bytes`)
    chunks.push(chunk)
  }
  try {
    return JSON.parse(Buffer.concat(chunks).toString())
  } catch {
    throw new Error(`${url} did not respond with JSON`)
  }
}
