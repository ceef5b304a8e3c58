import { ConnectionError } from '@mediabucket/client'
import { serviceUrl } from '../service/urls.ts'
import { replaceSession, type StoredSession, storedSession } from './stored-session.ts'

/** A token that expires so soon is renewed before it is sent. Milliseconds. */
const reserve = 30_000

const isCurrent = ({ renewal }: StoredSession): boolean =>
  !renewal || renewal.refreshToken === null || renewal.expiresAt - reserve > Date.now()

let renewing: Promise<StoredSession> | null = null

/**
 * Returns the session, with a new token if its token is about to expire. Only one tab renews it, since issuers accept a refresh token
 * once. If the issuer refuses, returns the session unchanged, whose token the service then refuses. Rejects with ConnectionError.
 */
export async function renewedSession(session: StoredSession): Promise<StoredSession> {
  if (isCurrent(session)) return session
  renewing ??= exclusively(() => renew(session)).finally(() => {
    renewing = null
  })
  return renewing
}

async function renew(session: StoredSession): Promise<StoredSession> {
  // Another tab may have renewed it.
  const stored = storedSession()
  if (stored?.renewal && stored.until === session.until && isCurrent(stored)) return stored
  const issuer = await import('./issuer-sign-in.ts')
  try {
    const next = await issuer.renew(session)
    replaceSession(session.token, next)
    return next
  } catch (error) {
    if (!issuer.isRefusal(error)) throw new ConnectionError(error)
    // Without a refresh token, so that it is not tried again.
    return { ...session, renewal: { expiresAt: 0, refreshToken: null } }
  }
}

/** Locks exist only on pages with TLS and on the own machine. */
const exclusively = <T>(work: () => Promise<T>): Promise<T> =>
  'locks' in navigator
    ? navigator.locks.request(`mediabucket.renewal ${serviceUrl().pathname}`, work)
    : work()
