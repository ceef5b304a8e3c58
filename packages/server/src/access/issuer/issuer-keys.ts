import { createLocalJWKSet, errors, type JWTVerifyGetKey } from 'jose'
import { isClaims } from '../../core/claims.ts'
import { Fault } from '../../core/fault.ts'
import type { IssuerSettings } from '../../core/issuer-settings.ts'
import { type Discovery, discover } from './discover.ts'
import { fetchJson } from './fetch-json.ts'

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

export interface IssuerKeys {
  /**
   * Finds the key of a token. Throws Fault `issuer-unavailable` if there are no keys, or if the key is unknown and the current keys cannot be
   * requested, and errors of jose.
   */
  readonly find: JWTVerifyGetKey
  /** Requests the keys. Resolves also after a failure, which has been reported. */
  refresh(): Promise<void>
  /** The discovery document as it was last received; null if it was not yet, or is not used. */
  discovery(): Discovery | null
}

interface Loaded {
  readonly find: JWTVerifyGetKey
  readonly discovery: Discovery | null
  readonly at: number
}

/**
 * The public keys of an issuer, in memory. They stay in use while the issuer cannot be reached, for up to a day. A token with an unknown
 * key causes a request to the issuer, at most one in 30 seconds, and after a failed one at most one in 5 seconds.
 */
export function createIssuerKeys(
  { issuer, jwksUrl, signIn }: Pick<IssuerSettings, 'issuer' | 'jwksUrl' | 'signIn'>,
  parts: {
    readonly now: () => number
    /** Receives the error of each failed request. */
    readonly onFailure: (error: unknown) => void
    readonly onSuccess: () => void
  },
): IssuerKeys {
  const { now, onFailure, onSuccess } = parts
  let loaded: Loaded | null = null
  let loading: Promise<void> | null = null
  let failedAt = Number.NEGATIVE_INFINITY
  let unknownAt = Number.NEGATIVE_INFINITY

  async function load(): Promise<void> {
    try {
      const discovery = jwksUrl === null || signIn !== null ? await discover(issuer) : null
      const find = createLocalJWKSet(keySet(await fetchJson(jwksUrl ?? discovery?.jwksUrl ?? '')))
      loaded = { find, discovery, at: now() }
      onSuccess()
    } catch (error) {
      failedAt = now()
      onFailure(error)
    } finally {
      loading = null
    }
  }

  const refresh = (): Promise<void> => {
    loading ??= load()
    return loading
  }

  // A clock that is set back does not prolong a pause.
  const hasFailed = () => loading === null && Math.abs(now() - failedAt) < failurePause
  const isPaused = () => loading === null && Math.abs(now() - unknownAt) < unknownKeyPause

  // A clock that is set back makes keys old.
  const ageOf = (keys: Loaded | null) => (keys === null ? maxAge : Math.abs(now() - keys.at))

  async function usable(): Promise<Loaded> {
    const age = ageOf(loaded)
    // While the issuer cannot be reached, only the first request waits for it.
    const isReachable = loaded === null || failedAt < loaded.at
    if (age >= refreshAfter && !hasFailed()) {
      const refreshing = refresh()
      if (age >= maxAge || (age >= staleAfter && isReachable)) await refreshing
    }
    if (loaded !== null && ageOf(loaded) < maxAge) return loaded
    throw unavailable()
  }

  return {
    async find(header, token) {
      const keys = await usable()
      try {
        return await keys.find(header, token)
      } catch (error) {
        if (!(error instanceof errors.JWKSNoMatchingKey) || isPaused()) throw error
      }
      if (!hasFailed()) await refresh()
      // The key may be a new one.
      if (loaded === null || loaded === keys) throw unavailable()
      unknownAt = now()
      return loaded.find(header, token)
    },
    refresh,
    discovery() {
      // Possibly no token was sent since the issuer is available again.
      if (loaded === null && !hasFailed()) void refresh()
      return loaded?.discovery ?? null
    },
  }
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
