import { createServiceClient } from '@mediabucket/client'
import { createServiceAddress, filesPrefix, formatPlace } from './buckets/address.ts'
import { createBucketList } from './buckets/bucket-list.ts'
import { createUsages } from './buckets/usages.ts'
import type { Service } from './gallery-context.ts'
import type { Preferences } from './preferences.tsx'
import { createConnection } from './service/connection.ts'
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
    buckets,
    list,
    usages,
    signedInTo: (bucket) => ({ token, tokenInfo: bucketTokenOf(bucket), ...clientsOf(bucket) }),
    placeOf: (bucket) => ({
      origin: address.listHash.peek(),
      prefix: filesPrefix(bucket),
    }),
    accessTo: (bucket) => ({
      connection,
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
