import { latestOf } from './renewed-session.ts'
import type { StoredSession } from './stored-session.ts'

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
