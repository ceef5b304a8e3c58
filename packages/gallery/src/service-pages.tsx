import type { ComponentType } from 'preact'
import { useEffect, useMemo } from 'preact/hooks'
import { BucketsPage } from './buckets/buckets-page.tsx'
import { type PlaceInService, ServiceContext } from './gallery-context.ts'
import { openService } from './open-service.ts'
import type { Preferences } from './preferences.tsx'
import type { Session, SignedIn, SignedInToService } from './session/session.ts'

export interface BucketPageProps {
  readonly signedIn: SignedIn
  readonly session: Session
  readonly preferences: Preferences
  /** Only of a bucket that a service token has opened. */
  readonly place?: PlaceInService
}

export interface ServicePagesProps {
  readonly signedIn: SignedInToService
  readonly session: Session
  readonly preferences: Preferences
  readonly BucketPage: ComponentType<BucketPageProps>
}

/** The buckets of a service, or the files of one of them. Few people have a service token, so it is loaded on demand. */
export function ServicePages({ signedIn, session, preferences, BucketPage }: ServicePagesProps) {
  const service = useMemo(() => openService(signedIn, session, preferences), [signedIn, session, preferences])
  useEffect(() => () => service.close(), [service])
  const place = service.address.place.value
  const opened =
    place.at === 'bucket' &&
    place.part === 'files' &&
    service.tokenInfo.scopes.includes('buckets:manage') &&
    service.scopes.includes('media:read')
      ? place.bucket
      : null
  const files = useMemo(
    () => opened && { signedIn: service.signedInTo(opened), place: service.placeOf(opened) },
    [service, opened],
  )
  if (files && !service.isGone.value)
    return <BucketPage key={opened} {...files} session={session} preferences={preferences} />
  return (
    <ServiceContext.Provider value={service}>
      <BucketsPage />
    </ServiceContext.Provider>
  )
}
