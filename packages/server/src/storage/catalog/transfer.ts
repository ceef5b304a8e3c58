import { createHash } from 'node:crypto'
import { ExplainedError } from '../../core/faults.ts'
import { listKeys, replaceKeys, type SigningKey } from './access/keys.ts'
import { insertTokens, listTransferredTokens, type TransferredToken } from './access/token-transfer.ts'
import { eventColumnCount, eventColumns } from './audit/audit-events.ts'
import { isDeletedName, readBucketSettings, settingColumns, settingValues } from './buckets.ts'
import { bucketIds, correctBucket } from './checks/bucket-counters.ts'
import { listTransferredWebhooks, replaceWebhooks, type TransferredWebhook } from './feed/webhooks.ts'
import { itemColumnCount, itemColumns } from './items/item-columns.ts'
import { parseItems, readItemDetails } from './items/item-rows.ts'
import { storeRequest } from './items/items.ts'
import { isTrash, refreshExpiry } from './items/trash.ts'
import { markMoved, movedKey, raiseFence, unmarkMoved } from './moved-data.ts'
import { readKeyDetails, type TransferredKey } from './objects/object-keys.ts'
import type { BucketId, BucketSettings, IdempotentRequest, ItemDetails, NewItem } from './records.ts'
import {
  all,
  bucketIdOf,
  bytes,
  bytesOrNull,
  type EngineName,
  eachEngine,
  first,
  integer,
  integerOrNull,
  type Query,
  type Row,
  selectColumns,
  text,
  textOrNull,
  tokenIdOf,
  type Work,
  write,
} from './statements.ts'
import { blobsIdentity, blobsKey, dataIdentity, dataKey, isNew, readMeta, writeMeta } from './upkeep.ts'
import {
  beginUsage,
  type DeletedBucket,
  listDeletedBuckets,
  type TransferredUsage,
  transferUsage,
  usageBatches,
} from './usage-transfer.ts'

/** A bucket without its counters, which the target counts again. */
interface TransferredBucket extends BucketSettings {
  readonly id: BucketId
  readonly name: string
  readonly createdAt: number
  readonly revision: number
  readonly nextSeq: number
  /** The columns `creation_key` and `creation`. */
  readonly creation: readonly [Uint8Array | null, Uint8Array | null]
}

/** The place of an item in its catalog. Items are transferred in this order. */
export interface ItemPosition {
  readonly bucketId: BucketId
  readonly seq: number
}

export interface TransferredItem extends ItemPosition {
  readonly item: ItemDetails
  /** Null if they are in the blob store. */
  readonly bytes: Uint8Array<ArrayBuffer> | null
  /** Null if it is not in the trash. */
  readonly trashed: {
    readonly homeSeq: number
    readonly deletedAt: number
    readonly expiresAt: number
  } | null
  readonly isDamaged: boolean
  /** Null if it has none. */
  readonly key: TransferredKey | null
}

interface TransferredRequest {
  readonly bucketId: BucketId
  readonly request: Omit<IdempotentRequest, 'now'>
  /** The items of its response. */
  readonly items: readonly NewItem[]
}

/** An event of the audit log, as the columns `eventColumns`, of which the first is its time. */
type TransferredEvent = readonly [time: number, ...(number | string | null)[]]

/**
 * Reads all rows of a catalog that are copied to another one: all but unfinished uploads, intents, tombstones and retired ids,
 * which describe the blob store of this catalog.
 */
export interface CatalogRows {
  /** Identifies the state of all items: differs after any change of them. */
  state(): Promise<string>
  /** Null if the data have none yet. */
  dataIdentity(): Promise<string | null>
  buckets(): Promise<TransferredBucket[]>
  tokens(): Promise<TransferredToken[]>
  keys(): Promise<SigningKey[]>
  webhooks(): Promise<TransferredWebhook[]>
  /** Up to `limit` items after this position, or from the first if it is null. */
  items(after: ItemPosition | null, limit: number): Promise<TransferredItem[]>
  /** All idempotency keys, in batches. */
  requests(): AsyncIterable<readonly TransferredRequest[]>
  /** The audit log in its order, in batches. */
  events(): AsyncIterable<readonly TransferredEvent[]>
  /** The usage of all buckets by day, in batches, also of deleted ones. A batch adds to earlier ones. */
  usage(): AsyncIterable<readonly TransferredUsage[]>
  deletedBuckets(): Promise<DeletedBucket[]>
  /** All items, or those up to and including this position. */
  countItems(upTo?: ItemPosition): Promise<number>
}

/** A catalog whose rows or bytes move. No other process may change it during the transfer. */
export interface CatalogSource extends CatalogRows {
  /** The settings of the place to which the rows have moved; null if they have not. */
  movedTo(): Promise<string | null>
  /**
   * From then on, no process but a transfer opens the catalog, and those that use it change nothing any more. Throws TransferError if `state` is not the
   * present one.
   */
  moveTo(settings: string, state: string): Promise<void>
  /**
   * From then on, processes that use the catalog change nothing any more, and those that open it do: the bytes have another store. Throws TransferError if
   * `state` is not the present one.
   */
  moveBytes(state: string): Promise<void>
  /** Every process opens the catalog again, and changes it. */
  reopen(): Promise<void>
  /** As moveBytes, for the store that has this identity from then on. */
  reopenBytes(identity: string): Promise<void>
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
  setDataIdentity(identity: string): Promise<void>
  addTokens(tokens: readonly TransferredToken[]): Promise<void>
  /** Replaces all keys. */
  setKeys(keys: readonly SigningKey[]): Promise<void>
  /** Replaces all webhooks. Their first message says that changes may be lost. */
  setWebhooks(webhooks: readonly TransferredWebhook[]): Promise<void>
  /** Adds the items with their positions, durably. */
  addItems(items: readonly TransferredItem[]): Promise<void>
  addRequests(requests: readonly TransferredRequest[]): Promise<void>
  /** Removes the events that an interrupted transfer has added. */
  clearEvents(): Promise<void>
  addEvents(events: readonly TransferredEvent[]): Promise<void>
  /** Removes the usage that an interrupted transfer has added, and adds the names of deleted buckets. */
  beginUsage(deleted: readonly DeletedBucket[]): Promise<void>
  addUsage(usage: readonly TransferredUsage[]): Promise<void>
  /** Counts the items of each bucket. From then on, a service can start on the catalog. */
  finish(): Promise<void>
  close(): Promise<void>
}

/** The catalog cannot receive the rows; the message is one line and says what to do. */
export class TransferError extends ExplainedError {
  override readonly name = 'TransferError'
}

/** In `meta` from the start to the end of a transfer into the catalog: the state of the source; empty before it is known. */
export const transferKey = 'transfer'

/** Events, and idempotency keys, in a batch. */
const eventsPerBatch = 1_000
const requestsPerBatch = 500

const bucketColumns = [
  'id',
  'name',
  'created_at',
  'revision',
  'next_seq',
  ...settingColumns,
  'creation_key',
  'creation',
]

const readBucket = (row: Row): TransferredBucket => ({
  id: bucketIdOf(row, 0),
  name: text(row, 1),
  createdAt: integer(row, 2),
  revision: integer(row, 3),
  nextSeq: integer(row, 4),
  ...readBucketSettings(row, 5),
  creation: [bytesOrNull(row, 5 + settingColumns.length), bytesOrNull(row, 6 + settingColumns.length)],
})

const listBuckets = (): Query<TransferredBucket[]> =>
  all(readBucket, `SELECT ${bucketColumns.join(', ')} FROM buckets ORDER BY id`)

/** As CatalogRows.state. */
function* readState(): Query<string> {
  const epoch = yield* readMeta('epoch')
  const revisions = (yield* listBuckets()).map(({ id, revision }) => [id, revision])
  return createHash('sha256')
    .update(JSON.stringify([epoch, revisions]))
    .digest('hex')
}

const placed = selectColumns(
  {
    ...{ bucketId: 'items.bucket_id', seq: 'seq', isDamaged: '(damaged.id IS NOT NULL)::int4' },
    ...{
      bytes: 'contents.bytes',
      homeSeq: 'home_seq',
      deletedAt: 'deleted_at',
      expiresAt: 'items.expires_at',
    },
    ...{
      key: 'object_keys.key',
      etag: 'etag',
      parts: 'parts',
      isPublic: 'public',
      headers: 'headers',
      modifiedAt: 'modified_at',
    },
  },
  itemColumnCount,
)

const readTransferredItem = (row: Row): TransferredItem => ({
  item: readItemDetails(row),
  bucketId: bucketIdOf(row, placed.at.bucketId),
  seq: integer(row, placed.at.seq),
  isDamaged: integer(row, placed.at.isDamaged) === 1,
  bytes: row[placed.at.bytes] === null ? null : bytes(row, placed.at.bytes),
  key:
    row[placed.at.key] === null
      ? null
      : { key: bytes(row, placed.at.key), ...readKeyDetails(row, placed.at.etag) },
  trashed:
    row[placed.at.homeSeq] === null
      ? null
      : {
          homeSeq: integer(row, placed.at.homeSeq),
          deletedAt: integer(row, placed.at.deletedAt),
          expiresAt: integer(row, placed.at.expiresAt),
        },
})

const listItems = (after: ItemPosition | null, limit: number): Query<TransferredItem[]> =>
  all(
    readTransferredItem,
    `SELECT items.${itemColumns}, ${placed.text}
    FROM items LEFT JOIN contents ON contents.id = content_id LEFT JOIN damaged ON damaged.id = items.id
      LEFT JOIN object_keys ON object_keys.item_id = items.id
    WHERE (items.bucket_id, seq) > ($1, $2) ORDER BY items.bucket_id, seq LIMIT $3`,
    ...[after?.bucketId ?? Number.MIN_SAFE_INTEGER, after?.seq ?? -1, limit],
  )

const countItems = (upTo?: ItemPosition): Query<number | null> =>
  first(
    (row) => integer(row, 0),
    'SELECT count(*) FROM items WHERE (bucket_id, seq) <= ($1, $2)',
    ...[upTo?.bucketId ?? Number.MAX_SAFE_INTEGER, upTo?.seq ?? 0],
  )

/** The requests of the first keys after one, also of those that have expired. */
const requestsAfter = (tokenId: string, bucketId: number, key: string): Query<TransferredRequest[]> =>
  all(
    (row) => ({
      items: parseItems(text(row, 0)),
      bucketId: bucketIdOf(row, 6),
      request: {
        tokenId: tokenIdOf(row, 1),
        key: text(row, 2),
        fingerprint: bytes(row, 3),
        expiresAt: integer(row, 4),
        bytes: integerOrNull(row, 5),
      },
    }),
    `SELECT items::text, token_id, key, fingerprint, expires_at, bytes, bucket_id FROM keyed_requests
      WHERE (token_id, bucket_id, key) > ($1, $2, $3) ORDER BY token_id, bucket_id, key LIMIT ${requestsPerBatch}`,
    ...[tokenId, bucketId, key],
  )

const readTransferredEvent = (row: Row): TransferredEvent => [
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

const eventRows = {
  sqlite: `SELECT ${eventColumns}, id FROM audit_events WHERE id > $2 ORDER BY id LIMIT ${eventsPerBatch}`,
  postgres: `SELECT ${eventColumns}, number FROM audit_events WHERE (time, number) > ($1, $2)
    ORDER BY time, number LIMIT ${eventsPerBatch}`,
}

const eventsAfter = (time: number, number: number) =>
  all(
    (row) => ({ event: readTransferredEvent(row), number: integer(row, eventColumnCount) }),
    eventRows,
    ...[time, number],
  )

export function createRows(query: <T>(query: Query<T>) => Promise<T>): CatalogRows {
  return {
    state: () => query(readState()),
    dataIdentity: () => query(dataIdentity()),
    buckets: () => query(listBuckets()),
    tokens: () => query(listTransferredTokens()),
    keys: () => query(listKeys()),
    webhooks: () => query(listTransferredWebhooks()),
    items: (after, limit) => query(listItems(after, limit)),
    async *requests() {
      let requests = await query(requestsAfter('', 0, ''))
      for (let last = requests.at(-1); last !== undefined; last = requests.at(-1)) {
        yield requests
        const { bucketId, request } = last
        requests = await query(requestsAfter(request.tokenId, bucketId, request.key))
      }
    },
    async *events() {
      let events = await query(eventsAfter(Number.MIN_SAFE_INTEGER, -1))
      for (let last = events.at(-1); last !== undefined; last = events.at(-1)) {
        yield events.map(({ event }) => event)
        events = await query(eventsAfter(last.event[0], last.number))
      }
    },
    usage: () => usageBatches(query),
    deletedBuckets: () => query(listDeletedBuckets()),
    countItems: async (upTo) => (await query(countItems(upTo))) ?? 0,
  }
}

/** How an engine runs the statements of a transfer. */
export interface TransferEngine {
  readonly name: EngineName
  query<T>(query: Query<T>): Promise<T>
  /** Runs one transaction. Calls the function again if the transaction must be repeated. */
  write<T>(work: () => Work<T>): Promise<T>
  close(): Promise<void>
}

/** No other transaction changes the rows between the comparison and the commit. */
function* closeAt(state: string, closing: Work<void>): Work<void> {
  yield* closing
  if ((yield* readState()) !== state) throw sourceChanged()
}

function* reopenBytes(identity: string): Work<void> {
  yield* raiseFence()
  yield* writeMeta(blobsKey, identity)
}

export const sourceChanged = (): TransferError =>
  new TransferError(
    'The source has changed during the migration. Stop every service that uses it, and run the same command again.',
  )

export const createSource = ({ query, write, close }: TransferEngine): CatalogSource => ({
  ...createRows(query),
  movedTo: () => query(readMeta(movedKey)),
  moveTo: (settings, state) => write(() => closeAt(state, markMoved(settings))),
  moveBytes: (state) => write(() => closeAt(state, raiseFence())),
  reopen: () => write(unmarkMoved),
  reopenBytes: (identity) => write(() => reopenBytes(identity)),
  blobsIdentity: () => query(blobsIdentity()),
  close,
})

const bucketInsertion = eachEngine(
  (
    engine,
  ) => `INSERT INTO buckets (${bucketColumns.join(', ')}) ${engine === 'postgres' ? 'OVERRIDING SYSTEM VALUE' : ''}
    VALUES (${bucketColumns.map((_, index) => `$${index + 1}`).join(', ')})
    ON CONFLICT (id) DO UPDATE SET ${settingColumns.map((column) => `${column} = excluded.${column}`).join(', ')}`,
)

const tables = [
  'object_keys',
  'keyed_counts',
  'webhook_deliveries',
  'webhooks',
  'keyed_requests',
  'damaged',
  'contents',
  'item_labels',
  'labels',
  'items',
  'item_names',
  'ranks',
  'tokens',
  'token_limits',
  'bucket_usage',
  'deleted_buckets',
  'buckets',
]

function* removeRows(): Work<void> {
  const others = ['uploads', 'upload_parts', 'upload_pieces', 'object_uploads', 'object_parts']
  yield* write({ sqlite: null, postgres: `TRUNCATE ${[...tables, ...others].join(', ')}` })
  for (const table of tables) yield* write({ sqlite: `DELETE FROM ${table}`, postgres: null })
}

/** As CatalogTarget.begin. */
function* beginTransfer(state: string, buckets: readonly TransferredBucket[]): Work<ItemPosition | null> {
  const earlier = yield* readMeta(transferKey)
  if (earlier === null && !(yield* isNew()))
    throw new TransferError(
      'The target has data. Choose an empty one, or start the service on it if this migration was completed before.',
    )
  if (earlier !== null && earlier !== state) yield* removeRows()
  yield* writeMeta(transferKey, state)
  for (const bucket of buckets)
    yield* write(
      bucketInsertion,
      ...[bucket.id, bucket.name, bucket.createdAt, bucket.revision, bucket.nextSeq],
      ...settingValues(bucket).map(({ column, value }) =>
        column === 'private' && isDeletedName(bucket.name) ? 2 : value,
      ),
      ...bucket.creation,
    )
  return yield* first(
    (row) => ({ bucketId: bucketIdOf(row, 0), seq: integer(row, 1) }),
    'SELECT bucket_id, seq FROM items ORDER BY bucket_id DESC, seq DESC LIMIT 1',
  )
}

function* storeDataIdentity(identity: string): Work<void> {
  yield* writeMeta(dataKey, identity)
}

function* insertRequests(requests: readonly TransferredRequest[]): Work<void> {
  for (const { bucketId, request, items } of requests) yield* storeRequest(bucketId, request, items)
}

function* countBucket(id: BucketId, engine: EngineName): Work<void> {
  yield* correctBucket(id, engine)
  if (!isTrash(id)) yield* refreshExpiry(id)
}

const eventRemoval = { sqlite: 'DELETE FROM audit_events', postgres: 'TRUNCATE audit_events' }

function* removeEvents(): Work<void> {
  yield* write(eventRemoval)
}

/** The audit log and the usage have ids of deleted buckets. A new bucket with one of them would seem to have its events and its usage. */
const idRetirement = {
  sqlite: `INSERT OR REPLACE INTO meta (key, value)
    SELECT 'last_bucket_id', max(id) FROM (SELECT max(bucket_id) AS id FROM audit_events UNION ALL SELECT max(id) FROM deleted_buckets) AS used
    WHERE id IS NOT NULL HAVING count(*) > 0`,
  // The ids of the buckets were given, so the sequence of new ids has not moved.
  postgres: `SELECT setval(pg_get_serial_sequence('buckets', 'id'), greatest(1, (SELECT max(id) FROM buckets),
    (SELECT max(bucket_id) FROM audit_events), (SELECT max(id) FROM deleted_buckets)))`,
}

function* endTransfer(): Work<void> {
  yield* write(idRetirement)
  // The feed is not copied.
  yield* write('UPDATE buckets SET changes_start = revision')
  yield* write('DELETE FROM meta WHERE key = $1', transferKey)
}

export const createTarget = (
  { name, query, write, close }: TransferEngine,
  own: Pick<CatalogTarget, 'isUnfinished' | 'addItems' | 'addEvents'>,
): CatalogTarget => ({
  ...own,
  begin: (state, buckets) => write(() => beginTransfer(state, buckets)),
  setDataIdentity: (identity) => write(() => storeDataIdentity(identity)),
  addTokens: (tokens) => write(() => insertTokens(tokens)),
  setKeys: (keys) => write(() => replaceKeys(keys)),
  setWebhooks: (webhooks) => write(() => replaceWebhooks(webhooks)),
  addRequests: (requests) => write(() => insertRequests(requests)),
  clearEvents: () => write(removeEvents),
  beginUsage: (deleted) => write(() => beginUsage(deleted)),
  addUsage: (usage) => write(() => transferUsage(usage)),
  async finish() {
    for (const id of await query(bucketIds())) await write(() => countBucket(id, name))
    await write(endTransfer)
  },
  close,
})
