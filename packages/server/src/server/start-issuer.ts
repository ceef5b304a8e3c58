import type { RemoveExpired, VerifiedGrant } from '../access/expired-items.ts'
import type { Catalog } from '../catalog/catalog.ts'
import type { GallerySignIn } from '../http/gallery/gallery-routes.ts'
import type { StartContext } from './start-context.ts'

/** One line of the log for each reason and minute, so that refused tokens do not fill it. Milliseconds. */
const refusalInterval = 60_000

/** Verifies the tokens of the issuer. */
export interface Issuer {
  readonly verifyUser: (token: string) => Promise<VerifiedGrant>
  /** Null if the gallery offers no sign-in with the issuer. */
  readonly signIn: GallerySignIn | null
}

/** Prepares the verification of JWTs; null if no issuer is configured. The start does not wait for the issuer. */
export async function startIssuer(
  { config, log }: StartContext,
  { catalog, removeExpired }: { readonly catalog: Catalog; readonly removeExpired: RemoveExpired },
): Promise<Issuer | null> {
  const settings = config.issuer
  if (settings === null) return null
  // The library is loaded only if it is used.
  const [{ clientMetadata }, { createIssuerKeys }, { verifyJwtOperation }, { verifyUserOperation }] =
    await Promise.all([
      import('../access/issuer/discover.ts'),
      import('../access/issuer/issuer-keys.ts'),
      import('../access/issuer/verify-jwt.ts'),
      import('../access/issuer/verify-user.ts'),
    ])
  const { issuer } = settings
  let isAvailable: boolean | null = null
  const keys = createIssuerKeys(settings, {
    now: Date.now,
    onFailure(err) {
      if (isAvailable !== false)
        log.warn(
          { err, issuer },
          'the keys of the issuer cannot be requested; earlier ones remain in use for a day',
        )
      isAvailable = false
    },
    onSuccess() {
      if (isAvailable !== true) log.info({ issuer }, 'received the keys of the issuer')
      isAvailable = true
    },
  })
  void keys.refresh()

  const loggedAt = new Map<string, number>()
  function onRefusal(reason: string): void {
    const at = Date.now()
    if (Math.abs(at - (loggedAt.get(reason) ?? 0)) < refusalInterval) return
    loggedAt.set(reason, at)
    log.warn({ reason }, 'refused a token of the issuer; further ones of this minute are not logged')
  }

  const verifyJwt = verifyJwtOperation(settings, { keys, now: Date.now, onRefusal })
  const verifyUser = verifyUserOperation(settings, {
    verifyJwt,
    catalog,
    removeExpired,
    now: Date.now,
    onTouchFailure: (err) => log.warn({ err }, 'the last use of a user was not recorded'),
  })
  const { signIn } = settings
  return {
    verifyUser,
    signIn: signIn && {
      ...signIn,
      metadata() {
        const discovery = keys.discovery()
        return discovery && clientMetadata(issuer, discovery)
      },
    },
  }
}
