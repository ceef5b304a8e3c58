import { ExplainedError } from '../core/explained-error.ts'
import { readBucketSettings, settingColumns, settingValues } from './buckets.ts'
import { itemColumnCount, readItem } from './item-columns.ts'
import type { SigningKey } from './keys.ts'
import type {
  BucketId,
  BucketSettings,
  IdempotentRequest,
  Item,
  NewMedia,
  NewMediaContent,
} from './records.ts'
import { bytes, integer, integerOrNull, type Row, text, textOrNull } from './rows.ts'
import type { TokenRecord } from './tokens.ts'
import { readToken } from './tokens.ts'

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

/** An event of the audit log, as the columns `eventColumns`, of which the first is its time. */
export type TransferredEvent = readonly [time: number, ...(number | string | null)[]]

/**
 * Reads all rows of a catalog that are copied to another one: all but unfinished uploads, intents, tombstones and retired ids,
 * which describe the blob store of this catalog.
 */
export interface CatalogRows {
  /** Identifies the state of all items: differs after any change of them. */
  state(): Promise<string>
  buckets(): Promise<TransferredBucket[]>
  tokens(): Promise<TransferredToken[]>
  keys(): Promise<SigningKey[]>
  /** Up to `limit` items after this position, or from the first if it is null. */
  items(after: ItemPosition | null, limit: number): Promise<TransferredItem[]>
  /** All idempotency keys, in batches. */
  requests(): AsyncIterable<readonly TransferredRequest[]>
  /** The audit log in its order, in batches. */
  events(): AsyncIterable<readonly TransferredEvent[]>
  /** All items, or those up to and including this position. */
  countItems(upTo?: ItemPosition): Promise<number>
}

/** A catalog whose rows move to another one. No other process may change it during the transfer. */
export interface CatalogSource extends CatalogRows {
  /** The settings of the place to which the rows have moved; null if they have not. */
  movedTo(): Promise<string | null>
  /** From then on, no process but a transfer opens the catalog; with null, every process opens it again. */
  setMovedTo(settings: string | null): Promise<void>
  blobsIdentity(): Promise<string | null>
  close(): Promise<void>
}

/**
 * Fills an empty catalog. No service starts on it before `finish`. An interrupted transfer continues with the next call of `begin`.
 */
export interface CatalogTarget {
  /** Whether a transfer into the catalog has begun and not ended. */
  isUnfinished(): Promise<boolean>
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
  /** Removes the events that an interrupted transfer has added. */
  clearEvents(): Promise<void>
  addEvents(events: readonly TransferredEvent[]): Promise<void>
  /** Counts the items of each bucket. From then on, a service can start on the catalog. */
  finish(): Promise<void>
  close(): Promise<void>
}

/** The catalog cannot receive the rows; the message is one line and says what to do. */
export class TransferError extends ExplainedError {
  override readonly name = 'TransferError'
}

/** The reason for which no process opens a catalog whose rows have moved. `place` is the path of the catalog, or the name of the database. */
export const movedText = (place: string, settings: string): string =>
  `The data of ${place} were moved by mediabucket migrate: use them with ${settings}, or run mediabucket migrate --reopen to use the earlier data again.`

const movedPrefix = 'moved to '

/** Replaces the identity of a store whose bytes `mediabucket migrate` has copied elsewhere, or of a shared one whose rows it has moved. */
export const movedIdentity = (settings: string): string => movedPrefix + settings

/** The settings in such an identity; null for any other. */
export const movedSettings = (identity: string | null): string | null =>
  identity?.startsWith(movedPrefix) ? identity.slice(movedPrefix.length) : null

/** Events in a batch. */
export const eventsPerBatch = 1_000

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

/** Reads `eventColumns`. */
export const readTransferredEvent = (row: Row): TransferredEvent => [
  integer(row, 0),
  integer(row, 1),
  integerOrNull(row, 2),
  textOrNull(row, 3),
  textOrNull(row, 4),
  integerOrNull(row, 5),
  textOrNull(row, 6),
  integer(row, 7),
  ...[8, 9, 10, 11].map((column) => textOrNull(row, column)),
]
