import { createHash } from 'node:crypto'
import { buffer } from 'node:stream/consumers'
import type { ItemId } from '../../../core/ids.ts'
import type { S3Location } from '../../../core/storage-urls.ts'
import { settleAll } from '../../../core/tasks.ts'
import type { VariantKey } from '../../../core/variants.ts'
import type {
  BlobStore,
  BlobsDirectory,
  IntentLog,
  LocalBytes,
  OpenBlob,
  PartialUploadStore,
  PartLog,
  StoredVariant,
  VariantStore,
} from '../blobs.ts'
import type { ReceivedBlob } from '../received-file.ts'
import {
  allVariantsFolder,
  announcedKey,
  blobKey,
  createS3Clients,
  identityKey,
  meaningOf,
  ObjectCalls,
  type S3Clients,
  type Timeouts,
  UncertainOutcome,
  variantFolder,
  variantObjectKey,
} from './object-calls.ts'
import { ObjectShares, type ObjectSources, openObject, peekObject } from './object-reads.ts'
import { HeldIntents, PartMemory, receiveObject } from './object-uploads.ts'
import { S3PartialUploads } from './s3-partial-uploads.ts'

/** Files that one request discards at the same time. The deadline of a removal begins when it is sent, so it must not wait for others. */
const parallelism = 16

/**
 * Stores blobs as objects, each under the id of its item, in a bucket of an S3 store. Processes share nothing else, so any number of them
 * can use one bucket. Received bytes are stored under their key at once, and a commit does nothing.
 */
export class S3Blobs implements BlobStore {
  readonly partialUploads: PartialUploadStore
  readonly variants: VariantStore
  readonly recovery = null
  readonly removalsAtOnce = parallelism
  readonly #clients: S3Clients
  readonly #calls: ObjectCalls
  readonly #prefix: string
  readonly #memory = new PartMemory()
  readonly #intents: HeldIntents
  readonly #objects: ObjectStore
  readonly #discarded = new WeakSet<ReceivedBlob>()
  /** Blobs of resumable uploads, which another process may have turned into the same item. */
  readonly #resumed = new WeakSet<ReceivedBlob>()

  constructor(options: {
    readonly location: S3Location
    /** For commands, without `parts` there are no resumable uploads, and without both nothing can be received. */
    readonly logs?: { readonly intents: IntentLog; readonly parts?: PartLog }
    /** Tests use shorter ones. */
    readonly timeouts?: Timeouts
  }) {
    const { bucket, prefix } = options.location
    this.#prefix = prefix
    this.#clients = createS3Clients(options.location)
    this.#calls = new ObjectCalls(this.#clients, bucket, options.timeouts)
    this.#intents = new HeldIntents(options.logs?.intents ?? noIntents)
    this.#objects = { calls: this.#calls, shares: new ObjectShares(this.#calls) }
    this.variants = new S3Variants(this.#objects, prefix)
    this.partialUploads = new S3PartialUploads({
      ...{ calls: this.#calls, memory: this.#memory, intents: this.#intents, prefix },
      log: options.logs?.parts ?? noParts,
      onComplete: (blob) => this.#resumed.add(blob),
    })
  }

  receive(id: ItemId, source: AsyncIterable<Uint8Array>, limit: number): Promise<ReceivedBlob> {
    const store = { calls: this.#calls, memory: this.#memory, intents: this.#intents }
    return receiveObject(store, { id, key: blobKey(this.#prefix, id) }, source, limit)
  }

  async peek({ handle, size }: ReceivedBlob): Promise<Blob> {
    return peekObject(this.#calls, handle, size)
  }

  async openReceived({ handle }: ReceivedBlob): Promise<OpenBlob> {
    const opened = await openObject(this.#objects, handle, 0)
    if (opened === null) throw new Error('received bytes are missing')
    return opened
  }

  share({ handle, size }: ReceivedBlob, atLeast: number): Promise<LocalBytes> {
    return this.#objects.shares.share(handle, size, atLeast)
  }

  async commit(blobs: readonly ReceivedBlob[]): Promise<void> {
    for (const blob of blobs)
      if (this.#discarded.has(blob)) throw new Error('discarded bytes cannot be committed')
    this.#intents.release(blobs.map(({ id }) => id))
  }

  async discard(blobs: readonly ReceivedBlob[]): Promise<void> {
    for (const blob of blobs) this.#discarded.add(blob)
    const own = blobs.filter((blob) => !this.#resumed.has(blob))
    const removed: ReceivedBlob[] = []
    let hasFailed = false
    // After a failure, no other removal begins: each could last until its deadline, and the response waits for them.
    await settleAll(own, parallelism, async (blob) => {
      if (hasFailed) return
      try {
        await this.#calls.remove(blobKey(this.#prefix, blob.id))
        removed.push(blob)
      } catch {
        hasFailed = true
      }
    })
    this.#intents.release(blobs.map(({ id }) => id))
    await this.#intents.clear(removed.map(({ id }) => id))
  }

  async checkWrites(): Promise<void> {}

  async isReachable(): Promise<boolean> {
    return await this.#calls.head(identityKey(this.#prefix)).then(
      (size) => size !== null,
      () => false,
    )
  }

  open(id: ItemId, wholeUpTo = 0): Promise<OpenBlob | null> {
    return openObject(this.#objects, blobKey(this.#prefix, id), wholeUpTo)
  }

  async remove(id: ItemId): Promise<void> {
    await this.#calls.remove(blobKey(this.#prefix, id))
    await this.variants.remove(id)
  }

  async removeInterrupted(id: ItemId): Promise<void> {
    const key = blobKey(this.#prefix, id)
    for await (const found of this.#calls.multipartUploads(key))
      await this.#calls.abort(found.key, found.upload)
    await this.remove(id)
  }

  async close(): Promise<void> {
    this.#intents.close()
    this.#clients.close()
  }
}

interface ObjectStore extends ObjectSources {
  readonly calls: ObjectCalls
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
class S3Variants implements VariantStore {
  readonly #objects: ObjectStore
  readonly #prefix: string

  constructor(objects: ObjectStore, prefix: string) {
    this.#objects = objects
    this.#prefix = prefix
  }

  async store(id: ItemId, key: VariantKey, bytes: Uint8Array): Promise<void> {
    await putWhole(this.#objects.calls, variantObjectKey(this.#prefix, id, key), bytes)
  }

  async open(
    id: ItemId,
    key: VariantKey,
    { pictureSize, wholeUpTo = 0 }: { readonly pictureSize?: number; readonly wholeUpTo?: number } = {},
  ): Promise<OpenBlob | null> {
    const [opened, found] = await Promise.all([
      openObject(this.#objects, variantObjectKey(this.#prefix, id, key), wholeUpTo),
      pictureSize === undefined ? null : this.#objects.calls.head(blobKey(this.#prefix, id)),
    ])
    if (opened === null || pictureSize === undefined || found === pictureSize) return opened
    await opened.close()
    return null
  }

  async remove(id: ItemId): Promise<void> {
    const { calls } = this.#objects
    for await (const { key } of calls.list(variantFolder(this.#prefix, id))) await calls.remove(key)
  }

  async *list(id?: ItemId): AsyncGenerator<StoredVariant> {
    const folder = id === undefined ? allVariantsFolder(this.#prefix) : variantFolder(this.#prefix, id)
    for await (const { key } of this.#objects.calls.list(folder)) {
      const meaning = meaningOf(this.#prefix, key)
      if (meaning.kind === 'variant') yield { id: meaning.id, key: meaning.variantKey }
    }
  }

  async removeOne(id: ItemId, key: VariantKey): Promise<void> {
    await this.#objects.calls.remove(variantObjectKey(this.#prefix, id, key))
  }
}

/** Stores an object. An outcome that is uncertain is reported as the failure that caused it. */
async function putWhole(calls: ObjectCalls, key: string, bytes: Uint8Array): Promise<void> {
  await calls.put(key, bytes, createHash('sha256').update(bytes).digest()).catch((error: unknown) => {
    throw error instanceof UncertainOutcome ? error.cause : error
  })
}

/** Bytes of an identity, and of what services have announced, at most. */
const maxText = 10_000

/** The bucket and prefix of the blobs, whose identity is the object `identity`. */
export class S3Directory implements BlobsDirectory {
  readonly path: string
  readonly isShared = true
  readonly advice: BlobsDirectory['advice']
  readonly #calls: ObjectCalls
  readonly #prefix: string

  constructor(location: S3Location) {
    const { bucket, prefix } = location
    this.path = `s3://${bucket}/${prefix}`
    this.#calls = new ObjectCalls(createS3Clients(location), bucket)
    this.#prefix = prefix
    const wrong = 'MEDIABUCKET_BLOBS_URL'
    this.advice = {
      place: 'the bucket and prefix',
      catalog: `set ${wrong} to another bucket or prefix`,
      missing: `perhaps ${wrong} names another bucket or prefix`,
      cure: 'Correct it',
      identify: (identity) =>
        `Correct ${wrong}, then try again; if it is right, store an object ${identityKey(prefix)} that contains ${identity}.`,
    }
  }

  async readIdentity(): Promise<string | null> {
    return (await this.#readText(identityKey(this.#prefix)))?.trim() || null
  }

  writeIdentity(identity: string): Promise<void> {
    return putWhole(this.#calls, identityKey(this.#prefix), Buffer.from(`${identity}\n`))
  }

  readAnnounced(): Promise<string | null> {
    return this.#readText(announcedKey(this.#prefix))
  }

  writeAnnounced(text: string): Promise<void> {
    return putWhole(this.#calls, announcedKey(this.#prefix), Buffer.from(text))
  }

  async has(id: ItemId): Promise<boolean> {
    return (await this.#calls.head(blobKey(this.#prefix, id))) !== null
  }

  async isEmpty(): Promise<boolean> {
    for await (const object of this.#calls.list(this.#prefix))
      if (meaningOf(this.#prefix, object.key).kind === 'stored') return false
    return true
  }

  async #readText(key: string): Promise<string | null> {
    const found = (await this.#calls.head(key)) === null ? null : await this.#calls.get(key, 0, maxText)
    return found && (await buffer(found.body)).toString()
  }
}
