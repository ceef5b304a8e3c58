import type { StoredPictures } from '../../core/bucket-pictures.ts'
import type { BucketSettings, MetadataRemoval } from '../../core/bucket-settings.ts'
import type { ItemId } from '../../core/ids.ts'
import type { ItemFilter } from '../../core/queries.ts'
import type { FileLimits, TokenLimits } from '../../core/quotas.ts'
import type { TokenId } from '../../core/token-ids.ts'
import type { Actor, Scope } from '../../core/token-rules.ts'
import type { ItemDetails, NewItem, Preview } from './items/item-columns.ts'

export type { BucketSettings } from '../../core/bucket-settings.ts'
export type { TokenId } from '../../core/token-ids.ts'
export type { ItemDetails, ItemEdit, ItemState, ItemTexts, NewItem, Preview } from './items/item-columns.ts'

declare const brand: unique symbol
export type BucketId = number & { readonly [brand]: 'BucketId' }
/** Identifies the bytes of one item; never reused. */
export type ContentId = number & { readonly [brand]: 'ContentId' }

/** The limits of a token. `id` is that of the token with which the limits were created; the tokens that replaced it share them. */
export interface GrantedLimits extends TokenLimits {
  readonly id: TokenId
}

/** A token and its bucket, read by one statement; times are milliseconds since 1970. */
export interface Grant {
  readonly tokenId: TokenId
  readonly bucketId: BucketId
  readonly scopes: ReadonlySet<Scope>
  readonly expiresAt: number | null
  readonly revokedAt: number | null
  readonly lastUsedAt: number | null
  /** Of a token of an issuer: the issuer, `|` and the subject; null for a token of this service. */
  readonly subject: string | null
  /** Incremented with every change of the bucket's items. With `expired` and the catalog's epoch it identifies one state. */
  readonly revision: number
  /** Items that have expired and are not removed yet. */
  readonly expired: number
  /** Items that have not expired. */
  readonly total: number
  readonly isPrivate: boolean
  /** When the next item of the bucket expires; null if none does. */
  readonly nextExpiry: number | null
  /** The lifetime of new items in days, of the token or the bucket; null if they do not expire. */
  readonly itemDays: number | null
  /** What the token may upload; null for no limits. */
  readonly limits: GrantedLimits | null
  /** What files the bucket accepts; null for no limits. */
  readonly fileLimits: FileLimits | null
  /** True if the bucket is private and its lists have signed URLs. */
  readonly signsPages: boolean
  /** Whether everybody may read objects that are public-read, by their keys. */
  readonly publicKeys: boolean
  /** Whether the bucket stores files that the service requests from other servers. */
  readonly urlUploads: boolean
  /** The options of the bucket about pictures. */
  readonly pictures: StoredPictures
  readonly removesMetadata: MetadataRemoval
}

/** The rows of one page with the bucket's revision and counts (as in Grant), from one snapshot. */
export interface PageRows {
  readonly revision: number
  readonly expired: number
  readonly total: number
  readonly rows: readonly { readonly id: ItemId; readonly extension: string | null }[]
}

/** Selects items of a bucket, and their order. */
export interface ItemSelection extends ItemFilter {
  readonly bucketId: BucketId
}

/** The place of an item in the lists of its bucket, also after its deletion. */
export interface ItemPlace {
  readonly seq: number
  /** The time by which the list is ordered: when it was stored or, in lists by that time, taken. Milliseconds since 1970. */
  readonly createdAt: number
  /** Of an item with a path. */
  readonly path?: string | null
  /** In a list by name, the key of the name as it is stored (core/names.ts). */
  readonly name?: string
  /** In a list by key, the key. */
  readonly key?: string
}

/** An item in a list. */
export interface ItemRow {
  readonly seq: number
  readonly item: ItemDetails
  /** In a list by name, the stored key of its name, which another version of Node.js may have computed. */
  readonly nameKey?: string
  /** In a list by key, the key. */
  readonly key?: string
}

/** Items in the order of their selection that have not expired, with the bucket's revision and count (as in Grant), from one snapshot. */
export interface ItemRows {
  readonly revision: number
  readonly expired: number
  readonly rows: readonly ItemRow[]
  /** The last place that was examined, if the read ended early, so that items may follow although rows are fewer than requested; else null. */
  readonly examined: ItemPlace | null
}

/** Items of a bucket by their positions, with the bucket's revision and counts (as in Grant), from one snapshot. */
export interface PositionedItems {
  readonly revision: number
  readonly expired: number
  readonly total: number
  readonly items: readonly ItemDetails[]
}

/** A value of the labels of a bucket with one key. */
interface BucketLabel {
  readonly value: string
  /** Items of the bucket that have it. */
  readonly items: number
}

export interface LabelKey {
  readonly key: string
  /** The most frequent ones first. */
  readonly values: readonly BucketLabel[]
}

/** The result of a render, with the dimensions of the picture in pixels; they are null for documents. */
export interface NewPreview extends Preview {
  /** Replaces what an earlier version recorded wrongly; otherwise what is known stays. */
  readonly isCorrection?: boolean
  readonly width: number | null
  readonly height: number | null
}

/** The item after an edit; `changed` if it did not have the expected texts, `full` if it would have too many labels. */
export type EditedItem = ItemDetails | 'missing' | 'changed' | 'full'

/** Items whose labels were changed, or had the labels already. */
export interface LabelledItems {
  readonly ids: readonly ItemId[]
  /** Items that would have too many labels. If there are any, no item was changed. */
  readonly full: readonly ItemId[]
}

/**
 * Whether an item can be served to everybody. A renamed item can be served, but its earlier response headers must not be reused. The variants of
 * a styled item depend on the options of its bucket, or on its focus. A private item needs a token or a signed URL.
 */
export type Servability = 'servable' | 'renamed' | 'styled' | 'private' | 'not'

/** A stored item: the details, and where it and its bytes are. */
export interface Item extends ItemDetails {
  readonly bucketId: BucketId
  /** True if the last check of its bytes found them changed. */
  readonly isDamaged: boolean
  /** Its bytes in the catalog; null if they are in the blob store. */
  readonly contentId: ContentId | null
  /** True if its bucket is private. */
  readonly isPrivate: boolean
  /** The options of its bucket about pictures. */
  readonly pictures: StoredPictures
}

/** An item that is added, with its bytes. It has this shape from the handler of its upload to the writer. */
export interface AddedItem extends NewItem {
  /** Null if they are in the blob store. The catalog takes over their buffer. */
  readonly bytes: Uint8Array<ArrayBuffer> | null
  /** Who adds it, for the audit log; set by the catalog. */
  readonly by?: Actor
}

/** The trash of a bucket. */
interface TrashState {
  /** Items and bytes in the trash; the bytes of the bucket include them. */
  readonly items: number
  readonly bytes: number
}

export interface BucketWithTrash extends Bucket {
  readonly trash: TrashState
}

/** An item in the trash. Times are milliseconds since 1970. */
export interface TrashedItem {
  /** Its number in the trash, which increases with each deletion. */
  readonly seq: number
  readonly item: ItemDetails
  readonly deletedAt: number
  readonly expiresAt: number
}

/** A part of a list of the trash. */
export interface TrashedItems {
  readonly rows: readonly TrashedItem[]
  /** The number of the last item that was examined, if the list ended early because many items have expired; otherwise null. */
  readonly examined: number | null
}

/** Removed items. */
export interface RemovedItems {
  readonly ids: readonly ItemId[]
  /** Those for which the blob store may hold bytes or variants. */
  readonly tombstones: readonly ItemId[]
}

/** A request with an `Idempotency-Key`, which may be retried and takes effect once. */
export interface IdempotentRequest {
  readonly tokenId: TokenId
  readonly key: string
  /** 32 bytes; differs for another content with the same key. */
  readonly fingerprint: Uint8Array
  /** Of the files, as they were sent; null or left out if it is not known. */
  readonly bytes?: number | null
  /** Milliseconds since 1970: records that expired before `now` are ignored; this one expires at `expiresAt`. */
  readonly now: number
  readonly expiresAt: number
}

export interface Bucket extends BucketSettings {
  readonly name: string
  readonly items: number
  readonly bytes: number
  /** Reserved by unfinished uploads. */
  readonly reservedItems: number
  readonly reservedBytes: number
}

export interface NamedBucket extends Bucket {
  readonly id: BucketId
}

/** The result of one step of a bucket's deletion. */
export interface DeletedChunk {
  /** Items whose rows were removed. */
  readonly items: number
  /** Those for which the blob store may hold bytes or variants, and the parts of unfinished uploads. */
  readonly tombstones: readonly ItemId[]
  /** The bucket itself was removed, because no items and uploads are left. */
  readonly isDeleted: boolean
}

/** A completed upkeep command. */
export interface UpkeepRun {
  readonly kind: 'backup' | 'fsck'
  /** Milliseconds since 1970. */
  readonly finishedAt: number
  /** Faults that it could not repair or copy. */
  readonly faults: number
}

/** Values for monitoring. Reading them does not scan items. */
export interface CatalogStatistics {
  /** When the oldest bucket was created, in milliseconds since 1970; null if there is none. */
  readonly firstBucketAt: number | null
  readonly items: number
  readonly bytes: number
  readonly unfinishedUploads: number
  /** Reserved by unfinished uploads: their lengths if known, otherwise their offsets. */
  readonly unfinishedBytes: number
  /** Items that have expired and are not removed yet. */
  readonly expiredItems: number
  /** Webhooks that are switched on and whose last delivery failed, and those that were switched off because of their receivers. */
  readonly failingWebhooks: number
  readonly stoppedWebhooks: number
  /** Changes that are queued or in progress. */
  readonly waitingChanges: number
  /** Size of the write-ahead log. Bytes. */
  readonly logBytes: number
  /** The last run of each kind, if any. */
  readonly upkeep: readonly UpkeepRun[]
}
