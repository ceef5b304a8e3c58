import type { S3Location } from '../../core/s3-location.ts'
import { settleAll } from '../../core/settle-all.ts'
import type { BlobStore, IntentLog } from '../blobs.ts'
import type { PartLog } from '../partial-uploads.ts'
import type { ReceivedBlob } from '../received-blob.ts'
import { createHeldIntents } from './held-intents.ts'
import { blobKey, identityKey } from './keys.ts'
import { createObjectCalls, type Timeouts } from './object-calls.ts'
import { openObject } from './open-object.ts'
import { createPartMemory } from './part-memory.ts'
import { peekObject } from './peek-object.ts'
import { receiveObject } from './receive-object.ts'
import { createS3Clients } from './s3-client.ts'
import { createS3PartialUploads } from './s3-partial-uploads.ts'
import { createS3Variants } from './s3-variants.ts'
import { createShareObject } from './share-object.ts'

/** Files that one request discards at the same time. The deadline of a removal begins when it is sent, so it must not wait for others. */
const parallelism = 16

/**
 * Stores blobs as objects, each under the id of its item, in a bucket of an S3 store. Processes share nothing else, so any number of them
 * can use one bucket. Received bytes are stored under their key at once, and a commit does nothing.
 */
export async function openS3Blobs(options: {
  readonly location: S3Location
  /** For commands, without `parts` there are no resumable uploads, and without both nothing can be received. */
  readonly logs?: { readonly intents: IntentLog; readonly parts?: PartLog }
  /** Tests use shorter ones. */
  readonly timeouts?: Timeouts
}): Promise<BlobStore> {
  const { bucket, prefix } = options.location
  const { intents: intentLog = noIntents, parts: log = noParts } = options.logs ?? {}
  const clients = createS3Clients(options.location)
  const calls = createObjectCalls(clients, bucket, options.timeouts)
  const memory = createPartMemory()
  const intents = createHeldIntents(intentLog)
  const share = createShareObject(calls)
  const variants = createS3Variants({ calls, share, prefix })
  const discarded = new WeakSet<ReceivedBlob>()
  /** Blobs of resumable uploads, which another process may have turned into the same item. */
  const resumed = new WeakSet<ReceivedBlob>()
  const partialUploads = createS3PartialUploads({
    ...{ calls, memory, intents, log, prefix },
    onComplete: (blob) => resumed.add(blob),
  })

  const remove: BlobStore['remove'] = async (id) => {
    await calls.remove(blobKey(prefix, id))
    await variants.remove(id)
  }

  return {
    partialUploads,
    variants,
    recovery: null,

    receive: (id, source, limit) =>
      receiveObject({ calls, memory, intents }, { id, key: blobKey(prefix, id) }, source, limit),

    peek: async ({ handle, size }) => peekObject(calls, handle, size),
    async openReceived({ handle }) {
      const opened = await openObject({ calls, share }, handle, 0)
      if (opened === null) throw new Error('received bytes are missing')
      return opened
    },
    share: ({ handle, size }, atLeast) => share(handle, size, atLeast),

    async commit(blobs) {
      for (const blob of blobs)
        if (discarded.has(blob)) throw new Error('discarded bytes cannot be committed')
      intents.release(blobs.map(({ id }) => id))
    },

    async discard(blobs) {
      for (const blob of blobs) discarded.add(blob)
      const own = blobs.filter((blob) => !resumed.has(blob))
      const removed: ReceivedBlob[] = []
      let hasFailed = false
      // After a failure, no other removal begins: each could last until its deadline, and the response waits for them.
      await settleAll(own, parallelism, async (blob) => {
        if (hasFailed) return
        try {
          await calls.remove(blobKey(prefix, blob.id))
          removed.push(blob)
        } catch {
          hasFailed = true
        }
      })
      intents.release(blobs.map(({ id }) => id))
      await intents.clear(removed.map(({ id }) => id))
    },

    checkWrites: async () => undefined,

    async isReachable() {
      return await calls.head(identityKey(prefix)).then(
        (size) => size !== null,
        () => false,
      )
    },

    open: (id, wholeUpTo = 0) => openObject({ calls, share }, blobKey(prefix, id), wholeUpTo),

    remove,

    async removeInterrupted(id) {
      const key = blobKey(prefix, id)
      for await (const found of calls.multipartUploads(key)) await calls.abort(found.key, found.upload)
      await remove(id)
    },

    async close() {
      intents.close()
      clients.close()
    },
  }
}

const refused = () => Promise.reject(new Error('this store was opened without records of uploads'))
const noIntents: IntentLog = { record: refused, clear: refused }
const noParts: PartLog = {
  read: refused,
  pieces: refused,
  begin: refused,
  store: refused,
}
