import type { CallOptions } from './client-options.ts'
import { sendJson } from './json.ts'
import type { SendSettings } from './send.ts'
import {
  arrayOf,
  type Check,
  count,
  countOrNull,
  flag,
  objectOf,
  optional,
  orNull,
  parse,
  text,
  textOrNull,
} from './shape.ts'
import type { Endpoints } from './urls.ts'
import { type Usage, usageShape } from './usage.ts'

/** The contents and the quotas of a bucket, as on the wire. */
export interface Bucket {
  readonly name: string
  readonly items: number
  /** With those in the trash. */
  readonly bytes: number
  /** Reserved by unfinished resumable uploads, in addition to `items` and `bytes`. */
  readonly reserved_items: number
  readonly reserved_bytes: number
  /** Null where there is no limit. */
  readonly max_items: number | null
  readonly max_bytes: number | null
  /** The limit of a file in bytes, and the types that files may have; null for none. Earlier versions of the service do not send these members. */
  readonly max_file_size?: number | null | undefined
  readonly types?: readonly string[] | null | undefined
  /** Days for which deleted items can be restored; 0 without a trash. Earlier versions of the service do not send these members. */
  readonly trash_days?: number | undefined
  /** Items in the trash, in addition to `items`, and their bytes, which `bytes` includes. */
  readonly trash_items?: number | undefined
  readonly trash_bytes?: number | undefined
  /** Whether bytes need a token or a signed URL. Earlier versions of the service do not send these members. */
  readonly private?: boolean | undefined
  /** Whether lists of a private bucket have signed URLs. */
  readonly signed_pages?: boolean | undefined
  /** Whether everybody may read objects that are public-read, by their keys. Earlier versions of the service do not send it. */
  readonly public_keys?: boolean | undefined
  /** Whether everybody may list the keys of its objects, if it has public keys. Earlier versions of the service do not send it. */
  readonly public_list?: boolean | undefined
  /** Whether the bucket stores files that the service requests from other servers, where the service does. Earlier versions of the service do not send it. */
  readonly url_uploads?: boolean | undefined
  /** The bucket's own sizes of variants, such as `card=640x360:cover`; null for those of the service. Earlier versions of the service do not send these members. */
  readonly variants?: readonly string[] | null | undefined
  /** The names of the sizes that everybody may read although the bucket is private; null for none. */
  readonly public_variants?: readonly string[] | null | undefined
  /** What sizes that cut keep of pictures without a focus; null for the setting of the service. */
  readonly crop?: string | null | undefined
  /** Whether metadata is removed from pictures and videos when they are stored. */
  readonly remove_metadata?: boolean | undefined
  /** Whether media objects have the time at which a picture or a video was taken. */
  readonly keep_taken_at?: boolean | undefined
  /** The days after which new items expire; null if they do not. Earlier versions of the service do not send it. */
  readonly item_days?: number | null | undefined
  /** The usage of today. Earlier versions of the service do not send it. */
  readonly usage_today?: Usage | undefined
}

export const bucketMembers = {
  name: text,
  items: count,
  bytes: count,
  reserved_items: count,
  reserved_bytes: count,
  max_items: countOrNull,
  max_bytes: countOrNull,
  max_file_size: optional(countOrNull),
  types: optional(orNull(arrayOf(text))),
  trash_days: optional(count),
  trash_items: optional(count),
  trash_bytes: optional(count),
  private: optional(flag),
  signed_pages: optional(flag),
  public_keys: optional(flag),
  public_list: optional(flag),
  url_uploads: optional(flag),
  variants: optional(orNull(arrayOf(text))),
  public_variants: optional(orNull(arrayOf(text))),
  crop: optional(textOrNull),
  remove_metadata: optional(flag),
  keep_taken_at: optional(flag),
  item_days: optional(countOrNull),
  usage_today: optional(usageShape),
}

const bucketShape: Check<Bucket> = objectOf<Bucket>(bucketMembers)

/** Fetches the bucket of the token. */
export const fetchBucket = (
  settings: SendSettings,
  endpoints: Endpoints,
  { signal }: CallOptions,
): Promise<Bucket> =>
  sendJson(settings, {
    url: endpoints.bucket,
    signal,
    what: 'a bucket',
    read: (value) => parse('a bucket', bucketShape, value),
  })
