import { type Bucket, bucketMembers } from './bucket.ts'
import type { CallOptions } from './client-options.ts'
import { acceptJson, followCursors, sendJson, sendTagged } from './json.ts'
import { readNothing } from './responses.ts'
import { type SendSettings, send } from './send.ts'
import { arrayOf, type Check, count, objectOf, orNull, parse, text, textOrNull } from './shape.ts'
import { type CreatedToken, createdTokenShape, type NewToken, newTokenBody } from './tokens.ts'
import { type Endpoints, withParameters } from './urls.ts'
import { fetchUsage, type Usage, type UsageOptions } from './usage.ts'

/** A bucket as tokens of the service see it, as on the wire. */
export interface ManagedBucket extends Bucket {
  /** RFC 3339, UTC. */
  readonly created_at: string
}

/** A new bucket, with its first token if one was asked for. */
export interface CreatedBucket extends ManagedBucket {
  readonly token: CreatedToken | null
}

/** The settings of a bucket, as on the wire. Those that are left out have their defaults, or stay as they are. Sizes are bytes. */
export interface BucketSettings {
  /** Null for no limit. */
  readonly max_items?: number | null | undefined
  readonly max_bytes?: number | null | undefined
  /** Of a file. */
  readonly max_file_size?: number | null | undefined
  /** Those that files may have, such as `image/png` or `image/*`; null for all. */
  readonly types?: readonly string[] | null | undefined
  /** Days for which deleted items can be restored; null for no trash. */
  readonly trash_days?: number | null | undefined
  /** Days after which new items expire; null if they do not. */
  readonly item_days?: number | null | undefined
  readonly private?: boolean | undefined
  readonly signed_pages?: boolean | undefined
  readonly public_keys?: boolean | undefined
  /** Whether everybody may list the keys of its objects, if it has public keys. */
  readonly public_list?: boolean | undefined
  /** Whether the bucket stores files that the service requests from other servers, where the service does. */
  readonly url_uploads?: boolean | undefined
  /** Up to 20 sizes of variants, such as `card=640x360:cover:jpeg:q80`; null for those of the service. */
  readonly variants?: readonly string[] | null | undefined
  /** The names of the sizes that everybody may read although the bucket is private; null for none. */
  readonly public_variants?: readonly string[] | null | undefined
  /** What sizes that cut keep of pictures without a focus; null for the setting of the service. */
  readonly crop?: 'center' | 'attention' | null | undefined
  readonly remove_metadata?: boolean | undefined
  readonly keep_taken_at?: boolean | undefined
}

export interface NewBucket extends BucketSettings {
  readonly name: string
  /** The first token of the bucket, which is created in the same transaction. */
  readonly token?: NewToken | undefined
}

export interface CreateBucketOptions extends CallOptions {
  /** With a key, the call is retried, and a repetition returns the same bucket and token. Without one, it is sent once. */
  readonly idempotencyKey?: string | undefined
}

/** Selects buckets, and their order. */
export interface BucketListOptions extends CallOptions {
  /** By name, by creation with the oldest first, or by bytes or items with the most first; `-desc` or `-asc` are the reverse. Default: `name`. */
  readonly order?: string | undefined
  /** The first characters of the names. */
  readonly name?: string | undefined
}

export interface BucketPageOptions extends BucketListOptions {
  /** 1 to 500. Default: 100. */
  readonly limit?: number | undefined
  /** The `next_cursor` of the page before. */
  readonly after?: string | undefined
}

/** Some buckets, and the totals of all that the options select, as on the wire. */
export interface BucketPage {
  readonly data: readonly ManagedBucket[]
  readonly totals: { readonly buckets: number; readonly items: number; readonly bytes: number }
  /** Null on the last page. */
  readonly next_cursor: string | null
}

export interface TaggedBucket {
  readonly bucket: ManagedBucket
  /** Identifies the settings, for `set`. */
  readonly etag: string | null
}

export interface SetBucketOptions extends CallOptions {
  /** Rejects with an `AnswerError` of status 412 if the settings have changed since the response with this `ETag`. */
  readonly ifMatch?: string | undefined
}

export interface DeleteBucketOptions extends CallOptions {
  /** As for `set`. */
  readonly ifMatch?: string | undefined
  /** Whether the bucket may have items, which are deleted with it. By default the call rejects with an `AnswerError` of status 409. */
  readonly withItems?: boolean | undefined
}

/** Manages the buckets of a service. The token needs the scope `buckets:manage`. Names that no bucket has reject with an `AnswerError` of status 404. */
export interface BucketManager {
  /** Iterates over the buckets. */
  list(options?: BucketListOptions): AsyncGenerator<ManagedBucket, void, undefined>

  /** Returns some buckets, with the totals of all of them. */
  page(options?: BucketPageOptions): Promise<BucketPage>

  /** Creates a bucket. Rejects with an `AnswerError` of status 409 if there is one with this name. */
  create(bucket: NewBucket, options?: CreateBucketOptions): Promise<CreatedBucket>

  get(name: string, options?: CallOptions): Promise<TaggedBucket>

  /** Changes the given settings. */
  set(name: string, settings: BucketSettings, options?: SetBucketOptions): Promise<TaggedBucket>

  /** Deletes a bucket with its tokens. Its name is free at once; what it held is removed in the background. */
  delete(name: string, options?: DeleteBucketOptions): Promise<void>

  /** Returns the usage of a bucket by day, the earliest day first. Today is partial. */
  usage(name: string, options?: UsageOptions): Promise<readonly Usage[]>

  /** Creates a token of a bucket, whose scopes the client's token has too, besides `tokens:manage`. It is not retried. */
  createToken(name: string, token: NewToken, options?: CallOptions): Promise<CreatedToken>
}

const managedMembers = { ...bucketMembers, created_at: text }
const managedShape: Check<ManagedBucket> = objectOf<ManagedBucket>(managedMembers)
const createdShape: Check<CreatedBucket> = objectOf<CreatedBucket>({
  ...managedMembers,
  token: orNull(createdTokenShape),
})
const pageShape: Check<BucketPage> = objectOf<BucketPage>({
  data: arrayOf(managedShape),
  totals: objectOf({ buckets: count, items: count, bytes: count }),
  next_cursor: textOrNull,
})

const what = 'a list of buckets'

const ifMatchHeader = (etag: string | undefined): Readonly<Record<string, string>> =>
  etag === undefined ? {} : { 'if-match': etag }

export function createBucketManager(settings: SendSettings, { buckets }: Endpoints): BucketManager {
  const urlOf = (name: string) => `${buckets}/${encodeURIComponent(name)}`

  const tagged = async (call: ReturnType<typeof sendTagged<ManagedBucket>>): Promise<TaggedBucket> => {
    const { value, etag } = await call
    return { bucket: value, etag }
  }
  const readBucket = (value: unknown) => parse('a bucket', managedShape, value)

  return Object.freeze({
    list: ({ order, name, signal }: BucketListOptions = {}) =>
      followCursors(settings, {
        url: withParameters(buckets, { limit: 500, order, name }),
        what,
        item: managedShape,
        signal,
      }),

    async page({ signal, ...parameters }: BucketPageOptions = {}) {
      const read = (value: unknown) => parse(what, pageShape, value)
      return await sendJson(settings, { url: withParameters(buckets, parameters), signal, what, read })
    },

    async create({ token, ...bucket }: NewBucket, { idempotencyKey, signal }: CreateBucketOptions = {}) {
      return await sendJson(settings, {
        method: 'POST',
        url: buckets,
        ...(idempotencyKey !== undefined && { headers: { 'idempotency-key': idempotencyKey } }),
        json: { ...bucket, token: token && newTokenBody(token) },
        repeatable: idempotencyKey !== undefined,
        signal,
        what: 'a new bucket',
        read: (value) => parse('a new bucket', createdShape, value),
      })
    },

    async get(name: string, { signal }: CallOptions = {}) {
      return await tagged(
        sendTagged(settings, { url: urlOf(name), signal, what: 'a bucket', read: readBucket }),
      )
    },

    async set(name: string, changes: BucketSettings, { ifMatch, signal }: SetBucketOptions = {}) {
      return await tagged(
        sendTagged(settings, {
          method: 'PATCH',
          url: urlOf(name),
          headers: ifMatchHeader(ifMatch),
          json: changes,
          repeatable: ifMatch === undefined,
          signal,
          what: 'a bucket',
          read: readBucket,
        }),
      )
    },

    async delete(name: string, { withItems = false, ifMatch, signal }: DeleteBucketOptions = {}) {
      await send(settings, {
        method: 'DELETE',
        url: withItems ? `${urlOf(name)}?items=delete` : urlOf(name),
        headers: { ...acceptJson, ...ifMatchHeader(ifMatch) },
        // A repetition could delete a new bucket with this name.
        repeatable: false,
        signal,
        read: readNothing,
      })
    },

    usage: async (name: string, options: UsageOptions = {}) =>
      await fetchUsage(settings, urlOf(name), options),

    async createToken(name: string, token: NewToken, { signal }: CallOptions = {}) {
      return await sendJson(settings, {
        method: 'POST',
        url: `${urlOf(name)}/tokens`,
        json: newTokenBody(token),
        repeatable: false,
        signal,
        what: 'a new token',
        read: (value) => parse('a new token', createdTokenShape, value),
      })
    },
  })
}
