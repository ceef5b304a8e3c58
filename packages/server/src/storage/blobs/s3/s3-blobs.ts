import { createHash } from 'node:crypto'
import { buffer } from 'node:stream/consumers'
import type { S3Location } from '../../../core/storage-urls.ts'
import { settleAll } from '../../../core/tasks.ts'
import type { BlobStore, BlobsDirectory, IntentLog, LocalBytes, PartLog, VariantStore } from '../blobs.ts'
import type { ReceivedBlob } from '../received-file.ts'
import {
  announcedKey,
  blobKey,
  createS3Clients,
  identityKey,
  meaningOf,
  ObjectCalls,
  type Timeouts,
  UncertainOutcome,
  variantFolder,
  variantObjectKey,
} from './object-calls.ts'
import { createShareObject, openObject, peekObject } from './object-reads.ts'
import { HeldIntents, PartMemory, receiveObject } from './object-uploads.ts'
import { createS3PartialUploads } from './s3-partial-uploads.ts'

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
  const calls = new ObjectCalls(clients, bucket, options.timeouts)
  const memory = new PartMemory()
  const intents = new HeldIntents(intentLog)
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
    removalsAtOnce: parallelism,

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

/** Stores variants as objects `variants/<id>/<key>`. */
function createS3Variants(parts: {
  readonly calls: Pick<ObjectCalls, 'put' | 'get' | 'head' | 'remove' | 'list' | 'signUrl' | 'timeouts'>
  readonly share: (key: string, size: number) => Promise<LocalBytes>
  readonly prefix: string
}): VariantStore {
  const { calls, prefix } = parts

  return {
    async store(id, key, bytes) {
      const sha256 = createHash('sha256').update(bytes).digest()
      await calls.put(variantObjectKey(prefix, id, key), bytes, sha256).catch((error: unknown) => {
        throw error instanceof UncertainOutcome ? error.cause : error
      })
    },

    async open(id, key, { pictureSize, wholeUpTo = 0 } = {}) {
      const [opened, found] = await Promise.all([
        openObject(parts, variantObjectKey(prefix, id, key), wholeUpTo),
        pictureSize === undefined ? null : calls.head(blobKey(prefix, id)),
      ])
      if (opened === null || pictureSize === undefined || found === pictureSize) return opened
      await opened.close()
      return null
    },

    async remove(id) {
      for await (const { key } of calls.list(variantFolder(prefix, id))) await calls.remove(key)
    },
  }
}

/** Bytes of an identity, and of what services have announced, at most. */
const maxText = 10_000

/** The bucket and prefix of the blobs, whose identity is the object `identity`. */
export function openS3Directory(location: S3Location): BlobsDirectory {
  const { bucket, prefix } = location
  const calls = new ObjectCalls(createS3Clients(location), bucket)
  const key = identityKey(prefix)
  const path = `s3://${bucket}/${prefix}`
  const wrong = 'MEDIABUCKET_BLOBS_URL'

  async function readText(key: string): Promise<string | null> {
    const found = (await calls.head(key)) === null ? null : await calls.get(key, 0, maxText)
    return found && (await buffer(found.body)).toString()
  }

  async function writeText(key: string, text: string): Promise<void> {
    const bytes = Buffer.from(text)
    await calls.put(key, bytes, createHash('sha256').update(bytes).digest()).catch((error: unknown) => {
      throw error instanceof UncertainOutcome ? error.cause : error
    })
  }

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

    readIdentity: async () => (await readText(key))?.trim() || null,
    writeIdentity: (identity) => writeText(key, `${identity}\n`),
    readAnnounced: () => readText(announcedKey(prefix)),
    writeAnnounced: (text) => writeText(announcedKey(prefix), text),

    has: async (id) => (await calls.head(blobKey(prefix, id))) !== null,

    async isEmpty() {
      for await (const object of calls.list(prefix))
        if (meaningOf(prefix, object.key).kind === 'stored') return false
      return true
    },
  }
}
