import { randomUUID } from 'node:crypto'
import { type Gateway, testBucket } from '../../../../../test/harness/ceph.ts'
import { newItemId, newUploadId } from '../../../src/core/ids.ts'
import type { S3Location } from '../../../src/core/storage-urls.ts'
import { intentLog } from '../../../src/items/blob-deletion.ts'
import type { BlobStore } from '../../../src/storage/blobs/blobs.ts'
import { createS3Clients, ObjectCalls, type Timeouts } from '../../../src/storage/blobs/s3/object-calls.ts'
import { S3Blobs } from '../../../src/storage/blobs/s3/s3-blobs.ts'
import type { Catalog } from '../../../src/storage/catalog/catalog.ts'
import { openSqliteCatalog } from '../../../src/storage/catalog/engines/sqlite/sqlite-catalog.ts'
import { partLog } from '../../../src/uploads/resumable-uploads.ts'
import { newBucket } from '../catalog/samples.ts'
import { tempDirectory } from '../catalog/temp-directory.ts'
import type { OpenedStore } from './blob-contract.ts'

export interface TemporaryS3Store extends OpenedStore {
  readonly location: S3Location
  readonly calls: ObjectCalls
  readonly catalog: Catalog
  /** Another process on the same bucket and catalog. */
  readonly openOther: () => Promise<BlobStore>
}

/** The credentials of the gateway, where the SDK finds them. */
function useCredentials({ accessKey, secretKey }: Gateway): void {
  process.env['AWS_ACCESS_KEY_ID'] = accessKey
  process.env['AWS_SECRET_ACCESS_KEY'] = secretKey
}

/** A store on the gateway of this run, under a prefix of its own. `endpoint` is that of a proxy before it, `catalog` one that the caller closes. */
export async function temporaryS3Store(
  options: {
    readonly endpoint?: string
    readonly lifetime?: number
    readonly timeouts?: Timeouts
    readonly catalog?: Catalog
  } = {},
): Promise<TemporaryS3Store> {
  const { name: bucket, gateway: ceph } = await testBucket()
  useCredentials(ceph)
  const location: S3Location = {
    bucket,
    prefix: `${randomUUID()}/`,
    endpoint: options.endpoint ?? ceph.endpoint,
    region: 'us-east-1',
    pathStyle: true,
  }
  const catalog =
    options.catalog ?? (await openSqliteCatalog({ directory: tempDirectory(), writer: 'direct' }))
  const logs = { intents: intentLog(catalog, options.lifetime), parts: partLog(catalog) }
  const open = () => new S3Blobs({ location, logs, ...(options.timeouts && { timeouts: options.timeouts }) })
  const store = await open()
  const others: BlobStore[] = []
  const clients = createS3Clients({ ...location, endpoint: ceph.endpoint })
  const calls = new ObjectCalls(clients, bucket)
  const bucketId = await newBucket(catalog, 'b')
  return {
    location,
    store,
    calls,
    catalog,
    async openOther() {
      const other = await open()
      others.push(other)
      return other
    },
    async count() {
      let found = 0
      for await (const _ of calls.list(location.prefix)) found += 1
      for await (const _ of calls.multipartUploads(location.prefix)) found += 1
      return found
    },
    async newUpload(length) {
      const upload = {
        ...{ id: newUploadId(), bucketId, length, metadata: null, filename: null, declaredType: null },
        ...{ itemId: newItemId(), expiresAt: Date.now() + 3_600_000, tokenId: null, limitedBy: null },
      }
      await catalog.createUpload(upload)
      return upload
    },
    async [Symbol.asyncDispose]() {
      for (const opened of [store, ...others]) await opened.close()
      clients.close()
      if (options.catalog === undefined) await catalog.close()
    },
  }
}
