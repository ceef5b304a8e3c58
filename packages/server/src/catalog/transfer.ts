import { ExplainedError } from '../core/explained-error.ts'
import { readBucketSettings, settingColumns, settingValues } from './bucket-settings.ts'
import { itemColumnCount, readItem } from './item-columns.ts'
import type { SigningKey } from './key-catalog.ts'
import type {
  BucketId,
  BucketSettings,
  IdempotentRequest,
  Item,
  NewMedia,
  NewMediaContent,
} from './records.ts'
import { bytes, integer, type Row, text } from './rows.ts'
import { readToken } from './token-columns.ts'
import type { TokenRecord } from './token-records.ts'

/** A bucket without its counters, which the target counts again. */
export interface TransferredBucket extends BucketSettings {
  readonly id: BucketId
  readonly name: string
  readonly createdAt: number
  readonly revision: number
  readonly nextSeq: number
}

export interface TransferredToken extends Omit<TokenRecord, 'bucket'> {
  readonly bucketId: BucketId
  /** SHA-256 of the token, 32 bytes. */
  readonly hash: Uint8Array
}

/** The place of an item in its catalog. Items are transferred in this order. */
export interface ItemPosition {
  readonly bucketId: BucketId
  readonly seq: number
}

export interface TransferredItem extends ItemPosition, NewMediaContent {
  readonly item: Item
  /** Null if it is not in the trash. */
  readonly trashed: {
    readonly homeSeq: number
    readonly deletedAt: number
    readonly expiresAt: number
  } | null
  readonly isDamaged: boolean
}

interface TransferredRequest {
  readonly request: Omit<IdempotentRequest, 'now'>
  /** The items of its response. */
  readonly items: readonly NewMedia[]
}

/**
 * Reads all rows of a catalog that move to another one: all but unfinished uploads, intents, tombstones and retired ids,
 * which describe the blob store of this catalog. No other process may change the catalog during the transfer.
 */
export interface CatalogSource {
  /** Identifies the state of all items: differs after any change of them. */
  state(): Promise<string>
  buckets(): Promise<TransferredBucket[]>
  tokens(): Promise<TransferredToken[]>
  keys(): Promise<SigningKey[]>
  /** Up to `limit` items after this position, or from the first if it is null. */
  items(after: ItemPosition | null, limit: number): Promise<TransferredItem[]>
  /** All idempotency keys, in batches. */
  requests(): AsyncIterable<readonly TransferredRequest[]>
  /** All items, or those up to and including this position. */
  countItems(upTo?: ItemPosition): Promise<number>
  close(): Promise<void>
}

/**
 * Fills an empty catalog. From `begin` to `finish`, no service starts on it. An interrupted transfer continues with the
 * next call of `begin`.
 */
export interface CatalogTarget {
  /**
   * Adds the buckets, and returns the position of the last item that an interrupted transfer has added; null if there is
   * none. Starts again if the interrupted transfer was of another state. Throws TransferError if the catalog has other data.
   */
  begin(state: string, buckets: readonly TransferredBucket[]): Promise<ItemPosition | null>
  addTokens(tokens: readonly TransferredToken[]): Promise<void>
  /** Replaces all keys. */
  setKeys(keys: readonly SigningKey[]): Promise<void>
  /** Adds the items with their positions, durably. */
  addItems(items: readonly TransferredItem[]): Promise<void>
  addRequests(requests: readonly TransferredRequest[]): Promise<void>
  /** Counts the items of each bucket. From then on, a service can start on the catalog. */
  finish(): Promise<void>
  close(): Promise<void>
}

/** The catalog cannot receive the rows; the message is one line and says what to do. */
export class TransferError extends ExplainedError {
  override readonly name = 'TransferError'
}

// Both engines select the same columns.

export const transferredBucketColumns = [
  'id',
  'name',
  'created_at',
  'revision',
  'next_seq',
  ...settingColumns,
]

/** Reads `transferredBucketColumns`. */
export const readTransferredBucket = (row: Row): TransferredBucket => ({
  id: integer(row, 0) as BucketId,
  name: text(row, 1),
  createdAt: integer(row, 2),
  revision: integer(row, 3),
  nextSeq: integer(row, 4),
  ...readBucketSettings(row, 5),
})

/** The values of `transferredBucketColumns`. */
export const transferredBucketValues = (bucket: TransferredBucket): (number | string | null)[] => [
  ...[bucket.id, bucket.name, bucket.createdAt, bucket.revision, bucket.nextSeq],
  ...settingValues(bucket).map(({ value }) => value),
]

/** The assignments that overwrite the settings of a bucket that exists. */
export const transferredSettings = settingColumns.map((column) => `${column} = excluded.${column}`).join(', ')

/** Reads the columns of `readToken`, the bucket and the hash. */
export function readTransferredToken(row: Row): TransferredToken {
  const { bucket: _bucket, ...token } = readToken(row)
  return { ...token, bucketId: integer(row, 8) as BucketId, hash: bytes(row, 9) }
}

/** Reads the columns of `readItem`, the bucket, the number, 1 if it is damaged, its bytes in the catalog, and the columns of the trash. */
export const readTransferredItem = (row: Row): TransferredItem => ({
  item: readItem(row),
  bucketId: integer(row, itemColumnCount) as BucketId,
  seq: integer(row, itemColumnCount + 1),
  isDamaged: integer(row, itemColumnCount + 2) === 1,
  bytes: row[itemColumnCount + 3] === null ? null : bytes(row, itemColumnCount + 3),
  trashed:
    row[itemColumnCount + 4] === null
      ? null
      : {
          homeSeq: integer(row, itemColumnCount + 4),
          deletedAt: integer(row, itemColumnCount + 5),
          expiresAt: integer(row, itemColumnCount + 6),
        },
})
