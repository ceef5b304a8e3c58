import { ConnectionError } from '@mediabucket/client'
import { serviceUrl } from '../service/urls.ts'
import { replaceSession, type StoredSession, storedSession } from './stored-session.ts'

/** A token that expires so soon is renewed before it is sent. Milliseconds. */
const reserve = 30_000

const isCurrent = ({ renewal }: StoredSession): boolean =>
  !renewal || renewal.refreshToken === null || renewal.expiresAt - reserve > Date.now()

/** Renewals in progress by the ends of their sessions, which renewals do not change. */
const renewals = new Map<number, Promise<StoredSession>>()

/**
 * Returns the session, with a new token if its token is about to expire. Only one tab renews it, since issuers accept a refresh token
 * once. If the issuer rejects the renewal, returns the latest token, which the service then rejects. Rejects with ConnectionError.
 */
export async function renewedSession(session: StoredSession): Promise<StoredSession> {
  if (isCurrent(session)) return session
  const { until } = session
  const renewal =
    renewals.get(until) ?? exclusively(() => renew(session)).finally(() => renewals.delete(until))
  renewals.set(until, renewal)
  return renewal
}

async function renew(session: StoredSession): Promise<StoredSession> {
  const latest = latestOf(session)
  if (isCurrent(latest)) return latest
  const issuer = await import('./issuer-sign-in.ts')
  try {
    const next = await issuer.renew(latest)
    replaceSession(latest.token, next)
    return next
  } catch (error) {
    if (!issuer.isRefusal(error)) throw new ConnectionError(error)
    // Without a refresh token, so that it is not tried again.
    return { ...latest, renewal: { expiresAt: 0, refreshToken: null } }
  }
}

/** Returns the stored session if another tab has renewed it, because the issuer then accepts only the newer refresh token. */
function latestOf(session: StoredSession): StoredSession {
  const stored = storedSession()
  const isNewer =
    stored?.until === session.until && (stored.renewal?.expiresAt ?? 0) > (session.renewal?.expiresAt ?? 0)
  return isNewer ? stored : session
}

/** Locks exist only on pages with TLS and on the own machine. */
const exclusively = <T>(work: () => Promise<T>): Promise<T> =>
  'locks' in navigator
    ? navigator.locks.request(`mediabucket.renewal ${serviceUrl().pathname}`, work)
    : work()

/**
 * Revokes the refresh token of a session in the background. Call it before the session is forgotten. A failure is ignored, because the
 * session ends in this browser in any case.
 */
export function revokeSession(session: StoredSession | undefined): void {
  const refreshToken = session && latestOf(session).renewal?.refreshToken
  if (refreshToken)
    void import('./issuer-sign-in.ts')
      .then(({ revokeRefreshToken }) => revokeRefreshToken(refreshToken))
      .catch(() => undefined)
}
