import { createHash } from 'node:crypto'
import { buffer } from 'node:stream/consumers'
import type { S3Location } from '../../core/s3-location.ts'
import type { BlobsDirectory } from '../blobs.ts'
import { blobKey, identityKey, meaningOf } from './keys.ts'
import { createObjectCalls, UncertainOutcome } from './object-calls.ts'
import { createS3Clients } from './s3-client.ts'

/** Bytes of an identity, at most. */
const maxIdentity = 1_000

/** The bucket and prefix of the blobs, whose identity is the object `identity`. */
export function openS3Directory(location: S3Location): BlobsDirectory {
  const { bucket, prefix } = location
  const calls = createObjectCalls(createS3Clients(location), bucket)
  const key = identityKey(prefix)
  const path = `s3://${bucket}/${prefix}`
  const wrong = 'MEDIABUCKET_BLOBS_URL'

  return {
    path,
    isShared: true,
    advice: {
      place: 'the bucket and prefix',
      catalog: `set ${wrong} to another bucket or prefix`,
      missing: `perhaps ${wrong} names another bucket or prefix`,
      cure: 'Correct it',
      identify: (identity) =>
        `Correct ${wrong}, then try again; if it is right, store an object ${key} that contains ${identity}.`,
    },

    async readIdentity() {
      const found = (await calls.head(key)) === null ? null : await calls.get(key, 0, maxIdentity)
      return found && ((await buffer(found.body)).toString().trim() || null)
    },

    async writeIdentity(identity) {
      const bytes = Buffer.from(`${identity}\n`)
      await calls.put(key, bytes, createHash('sha256').update(bytes).digest()).catch((error: unknown) => {
        throw error instanceof UncertainOutcome ? error.cause : error
      })
    },

    has: async (id) => (await calls.head(blobKey(prefix, id))) !== null,

    async isEmpty() {
      for await (const object of calls.list(prefix))
        if (meaningOf(prefix, object.key).kind === 'stored') return false
      return true
    },
  }
}
