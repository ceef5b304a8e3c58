import { createServiceClient } from '@mediabucket/client'
import { computed, signal } from '@preact/signals'
import { createServiceAddress, filesPrefix, formatPlace, type ServicePlace } from './buckets/address.ts'
import { createBucketList } from './buckets/bucket-list.ts'
import { createUsages } from './buckets/usages.ts'
import type { Service } from './gallery-context.ts'
import type { Preferences } from './preferences.tsx'
import { type Connection, createConnection, isBucketGone } from './service/connection.ts'
import type { Session, SignedInToService } from './session/session.ts'
import { createNotices } from './shell/notices.ts'
import { strings } from './strings.ts'

/** Creates the stores of the pages of a service and connects them. */
export function openService(
  { options, tokenInfo, clientsOf, token }: SignedInToService,
  session: Session,
  preferences: Preferences,
): Service {
  const client = createServiceClient(options)
  const notices = createNotices()
  const connection = createConnection(() => client.whoami(), session.end)
  const { buckets } = client
  const address = createServiceAddress()
  const list = createBucketList(buckets, connection)
  const usages = createUsages(buckets, connection)
  const scopes = tokenInfo.scopes.filter((scope) => scope !== 'buckets:manage')
  const bucketTokenOf = (bucket: string) => ({ ...tokenInfo, scopes, bucket })

  /** The place at which a bucket was found not to exist. Its address may be opened again later. */
  const gone = signal<ServicePlace | null>(null)
  function reportGone(bucket: string): void {
    const place = address.place.peek()
    if (place.at === 'bucket' && place.bucket === bucket) gone.value = place
  }
  const connectionTo = (bucket: string): Connection => ({
    ...connection,
    watch: (request) =>
      connection.watch(request).catch((error: unknown) => {
        if (isBucketGone(error)) reportGone(bucket)
        throw error
      }),
  })

  connection.onRestored(() => {
    notices.show(strings.connection.back)
    void list.refresh()
    usages.clear()
  })

  return {
    tokenInfo,
    scopes,
    connection,
    notices,
    preferences,
    address,
    isGone: computed(() => gone.value !== null && gone.value === address.place.value),
    connectionTo,
    buckets,
    list,
    usages,
    signedInTo: (bucket) => ({ token, tokenInfo: bucketTokenOf(bucket), ...clientsOf(bucket) }),
    placeOf: (bucket) => ({
      origin: address.listHash.peek(),
      prefix: filesPrefix(bucket),
      onGone(unfinished) {
        if (unfinished > 0) notices.show(strings.buckets.notUploaded(unfinished, bucket), { tone: 'bad' })
        reportGone(bucket)
      },
    }),
    accessTo: (bucket) => ({
      connection: connectionTo(bucket),
      notices,
      preferences,
      signOut: session.signOut,
      client: clientsOf(bucket).client,
      tokenInfo: bucketTokenOf(bucket),
      parent: {
        get label() {
          return strings.buckets.backToBucket(bucket)
        },
        open: () => address.go(formatPlace({ at: 'bucket', bucket, part: null })),
      },
    }),
    signOut: session.signOut,
    close() {
      address.close()
      connection.close()
      usages.close()
    },
  }
}
