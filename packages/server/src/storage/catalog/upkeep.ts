import type { ItemId } from '../../core/ids.ts'
import type { Actor } from '../../core/token-rules.ts'
import { expiredOfAll, isNotDeleted } from './buckets.ts'
import { auditedWritesOf, writesOf } from './declarations.ts'
import { countWebhooks } from './feed/webhooks.ts'
import type { CatalogStatistics, UpkeepRun } from './records.ts'
import {
  all,
  databaseTime,
  eachEngine,
  first,
  integer,
  integerOrNull,
  itemIdOf,
  type Query,
  type Row,
  record,
  text,
  type Work,
  write,
} from './statements.ts'

const readId = (row: Row): ItemId => itemIdOf(row, 0)

const intentsUntilNow = {
  sqlite: `SELECT id FROM intents WHERE expires_at <= ${databaseTime.sqlite}`,
  postgres: 'SELECT id FROM intents WHERE expires_at <= clock_timestamp()',
}

const intentInsertion = {
  sqlite: `INSERT INTO intents (id, expires_at) SELECT value, ${databaseTime.sqlite} + $2 FROM json_each($1) WHERE true
    ON CONFLICT DO UPDATE SET expires_at = max(expires_at, excluded.expires_at)`,
  postgres: `INSERT INTO intents (id, expires_at)
    SELECT id, clock_timestamp() + $2::int8 * interval '1 millisecond' FROM unnest($1::text[]) AS id ORDER BY id
    ON CONFLICT (id) DO UPDATE SET expires_at = greatest(intents.expires_at, excluded.expires_at)`,
}

/** Of SQLite; PostgreSQL has functions. */
const unreferenced = `SELECT value FROM json_each($1) WHERE NOT EXISTS (SELECT 1 FROM items WHERE id = value)
  AND NOT EXISTS (SELECT 1 FROM tombstones WHERE id = value)
  AND NOT EXISTS (SELECT 1 FROM uploads WHERE item_id = value AND finished = 0)
  AND NOT EXISTS (SELECT 1 FROM object_parts WHERE item_id = value)`

const removable = eachEngine(
  (
    engine,
  ) => `${engine === 'sqlite' ? 'SELECT value FROM json_each($1)' : 'SELECT value FROM unnest($1::text[]) AS value'}
  WHERE EXISTS (SELECT 1 FROM tombstones WHERE id = value) AND NOT EXISTS (SELECT 1 FROM items WHERE id = value)
    AND NOT EXISTS (SELECT 1 FROM uploads WHERE item_id = value AND finished = 0)
    AND NOT EXISTS (SELECT 1 FROM object_parts WHERE item_id = value)
    AND NOT EXISTS (SELECT 1 FROM intents WHERE id = value AND NOT expires_at <= ${engine === 'sqlite' ? databaseTime.sqlite : 'clock_timestamp()'})`,
)

const retirement = {
  sqlite: 'INSERT INTO retired (id) SELECT value FROM json_each($1) WHERE true ON CONFLICT DO NOTHING',
  postgres: null,
}

/**
 * Records that the blob store is about to commit bytes under these ids. The transaction that adds an item removes its intent,
 * so after a crash the remaining ones name all committed bytes without an item. Their deadline is `lifetime` milliseconds from now;
 * a deadline of an existing intent is only extended.
 */
export function* addIntents(ids: readonly ItemId[], lifetime: number): Work<undefined> {
  yield* write(intentInsertion, ids, lifetime)
}

export const listIntents = (): Query<ItemId[]> => all(readId, 'SELECT id FROM intents')

/** The ids of intents whose deadline has passed. */
export const expiredIntents = (): Query<ItemId[]> => all(readId, intentsUntilNow)

/**
 * Of intents whose deadline has passed, returns the ids that no item, tombstone or unfinished upload has, and reserves them
 * permanently in the same transaction: no item can have them, so their bytes can be removed.
 */
export function* retireIntents(ids: readonly ItemId[]): Work<readonly ItemId[]> {
  const expired = `${unreferenced} AND value IN (${intentsUntilNow.sqlite})`
  const retired = yield* all(readId, { sqlite: expired, postgres: 'SELECT retire_intents($1)' }, ids)
  yield* write(retirement, retired)
  return retired
}

/** As findUnreferenced, and reserves the returned ids permanently. */
export function* retireIds(ids: readonly ItemId[]): Work<readonly ItemId[]> {
  const retired = yield* all(readId, { sqlite: unreferenced, postgres: 'SELECT retire_ids($1)' }, ids)
  yield* write(retirement, retired)
  return retired
}

/** Removes intents. Call it when the blob store has no bytes under these ids. */
export function* clearIntents(ids: readonly ItemId[]): Work<undefined> {
  yield* write('DELETE FROM intents WHERE id = ANY ($1::text[])', ids)
}

/** Returns the ids that no item, tombstone, unfinished upload or part has. */
export const findUnreferenced = (ids: readonly ItemId[]): Query<ItemId[]> =>
  all(readId, { sqlite: unreferenced, postgres: 'SELECT unreferenced_ids($1)' }, ids)

/** Of these ids, those that items have. */
export const itemsNamed = (ids: readonly ItemId[]): Query<ItemId[]> =>
  all(readId, 'SELECT id FROM items WHERE id = ANY ($1::text[])', ids)

/** Ids of removed items whose bytes or variants may still exist in the blob store. */
export const listTombstones = (): Query<ItemId[]> => all(readId, 'SELECT id FROM tombstones')

/**
 * Of these ids, those that have a tombstone and that no item, unfinished upload or current intent names: their bytes may be removed. No item
 * whose bytes are in the blob store is added with such an id while it has its tombstone.
 */
export const removableBlobs = (ids: readonly ItemId[]): Query<ItemId[]> => all(readId, removable, ids)

/** Removes the tombstones of items whose bytes and variants were removed. */
export function* clearTombstones(ids: readonly ItemId[]): Work<undefined> {
  yield* write('DELETE FROM tombstones WHERE id = ANY ($1::text[])', ids)
}

/** The value of a key of `meta`; null if there is none. */
export const readMeta = (key: string): Query<string | null> =>
  first((row) => text(row, 0), 'SELECT value FROM meta WHERE key = $1', key)

export const writeMeta = (key: string, value: string): Work<number> =>
  write(
    'INSERT INTO meta (key, value) VALUES ($1, $2) ON CONFLICT (key) DO UPDATE SET value = excluded.value',
    ...[key, value],
  )

export const identityPattern = /^[0-9a-f]{32}$/

export const blobsKey = 'blobs'

/**
 * The identity of the directory of the bytes; null before the first start. A damaged identity is none: a start creates another one, if the directory
 * has the bytes of the items.
 */
export function* blobsIdentity(): Query<string | null> {
  const identity = yield* readMeta(blobsKey)
  return identity !== null && identityPattern.test(identity) ? identity : null
}

/** Sets the identity if there is none. Returns the one that is set: another server may have been first. */
export function* claimBlobsIdentity(identity: string): Work<string> {
  const damaged = (yield* blobsIdentity()) === null ? yield* readMeta(blobsKey) : null
  if (damaged !== null) yield* write('DELETE FROM meta WHERE key = $1 AND value = $2', blobsKey, damaged)
  yield* write('INSERT INTO meta (key, value) VALUES ($1, $2) ON CONFLICT DO NOTHING', blobsKey, identity)
  return (yield* blobsIdentity()) ?? identity
}

export const dataKey = 'data'

/**
 * The identity of the data, which restored and migrated data keep: a directory of backups has those of one identity. Null before the first backup. A
 * damaged one is none.
 */
export function* dataIdentity(): Query<string | null> {
  const identity = yield* readMeta(dataKey)
  return identity !== null && identityPattern.test(identity) ? identity : null
}

/** Sets the identity if there is none. Returns the one that is set: another backup may have been first. */
export function* claimDataIdentity(identity: string): Work<string> {
  const present = yield* dataIdentity()
  if (present === null) yield* writeMeta(dataKey, identity)
  return present ?? identity
}

const auditKey = 'audit'

/** Whether the last start of the service has turned the audit log on. */
export function* isAudited(): Query<boolean> {
  return (yield* readMeta(auditKey)) === 'on'
}

/** Stores whether the audit log is on, for the changes of commands. */
export function* storeAudit(isOn: boolean): Work<undefined> {
  if ((yield* isAudited()) !== isOn) yield* writeMeta(auditKey, isOn ? 'on' : 'off')
}

const sizesKey = 'variant_sizes'

/** Identifies the sizes of variants at the last sweep of the stored ones; null before the first one. */
export const sweptSizes = (): Query<string | null> => readMeta(sizesKey)

export function* storeSweptSizes(sizes: string): Work<undefined> {
  yield* writeMeta(sizesKey, sizes)
}

/** Ids of some items whose bytes are in the blob store: the first and the last ones. */
export function* someWithBlobs(): Query<ItemId[]> {
  const some = (order: 'ASC' | 'DESC') =>
    all(
      readId,
      `SELECT id FROM items WHERE content_id IS NULL
      ORDER BY bucket_id ${order}, seq ${order} LIMIT 20`,
    )
  return [...(yield* some('ASC')), ...(yield* some('DESC'))]
}

/** What shows which bytes belong to a catalog. */
export interface BlobsOwner {
  /** As blobsIdentity. */
  readonly identity: string | null
  /** As someWithBlobs, for a catalog without an identity. */
  readonly items: readonly ItemId[]
}

export function* blobsOwner(): Query<BlobsOwner> {
  const identity = yield* blobsIdentity()
  return { identity, items: identity === null ? yield* someWithBlobs() : [] }
}

/** True if the catalog has no bucket. */
export function* isNew(): Query<boolean> {
  return (yield* first(() => false, 'SELECT 1 FROM buckets LIMIT 1')) ?? true
}

/** Throws if rows cannot be read. */
export function* checkReads(): Query<undefined> {
  yield* isNew()
}

/** The kinds of upkeep runs. The last run of each is a value of the table `meta`. */
const upkeepKinds = ['backup', 'fsck'] as const

const runKey = (kind: UpkeepRun['kind']): string => `last-${kind}`

/** The statistics that are stored in the catalog. */
export function* readStatistics(): Query<Omit<CatalogStatistics, 'waitingChanges' | 'logBytes'>> {
  const sums = yield* first(
    (row) => ({
      items: integer(row, 0),
      bytes: integer(row, 1),
      unfinishedUploads: integer(row, 2),
      unfinishedBytes: integer(row, 3),
      firstBucketAt: integerOrNull(row, 4),
    }),
    `SELECT coalesce(sum(total), 0)::int8, coalesce(sum(bytes), 0)::int8,
      coalesce(sum(reserved_items), 0)::int8, coalesce(sum(reserved_bytes), 0)::int8, min(created_at) FROM buckets
      WHERE id > 0 AND ${isNotDeleted}`,
  )
  const expiredItems = (yield* first((row) => integer(row, 0), expiredOfAll, Date.now())) ?? 0
  const upkeep: UpkeepRun[] = []
  for (const kind of upkeepKinds) {
    const [finishedAt, faults] = (yield* readMeta(runKey(kind)))?.split(' ').map(Number) ?? []
    if (finishedAt !== undefined && faults !== undefined) upkeep.push({ kind, finishedAt, faults })
  }
  const webhooks = yield* countWebhooks()
  return {
    ...(sums ?? { items: 0, bytes: 0, unfinishedUploads: 0, unfinishedBytes: 0, firstBucketAt: null }),
    ...webhooks,
    expiredItems,
    upkeep,
  }
}

/** Records a completed upkeep command; replaces the earlier record of its kind. */
export function* recordUpkeep({ kind, finishedAt, faults }: UpkeepRun, by?: Actor): Work<undefined> {
  yield* writeMeta(runKey(kind), `${finishedAt} ${faults}`)
  yield* record(by, (by) => ({ action: kind, by, bucketId: null, target: null, detail: { faults } }))
}

const waitForChanges = {
  sqlite: null,
  // A transaction that has begun holds a lock of `batches`, also while its other statements are on the network, and one that changes the other
  // tables holds locks of them. `batches` first, so that a transaction that waits for this one holds nothing.
  postgres: 'LOCK TABLE batches, items, uploads, object_parts, intents IN SHARE MODE',
}

/**
 * Waits until no write of an earlier process can be committed any more: PostgreSQL may still be committing what a process sent
 * before it was killed. For a start that compares rows with files.
 */
export function* awaitEarlierWrites(): Work<undefined> {
  yield* write(waitForChanges)
}

const writeCheck = {
  sqlite: `INSERT OR REPLACE INTO meta (key, value) VALUES ('write_check', CAST(${databaseTime.sqlite} AS TEXT))`,
  // Each transaction writes the row of its batch.
  postgres: null,
}

/** Throws if rows cannot be written. */
export function* checkWrites(): Work<undefined> {
  yield* write(writeCheck)
}

export const reads = {
  ...{ listIntents, expiredIntents, findUnreferenced, itemsNamed, listTombstones, removableBlobs },
  ...{ blobsIdentity, dataIdentity, someWithBlobs, isNew, checkReads, sweptSizes },
}

export const writes = {
  ...writesOf({ addIntents, retireIntents, clearIntents, clearTombstones }),
  ...writesOf({
    claimBlobsIdentity,
    claimDataIdentity,
    storeAudit,
    storeSweptSizes,
    awaitEarlierWrites,
    checkWrites,
  }),
  ...auditedWritesOf({ recordUpkeep }),
}

/** Returns the free space of the catalog to the file system. */
export interface CatalogVacuum {
  /** Bytes of the catalog, and how many of them are free. */
  space(): { readonly size: number; readonly free: number }
  /** Releases some free space in a short transaction. A server may be running. */
  releaseSome(): void
  /** Truncates the files of the catalog, as far as no other process is reading them. */
  finish(): void
  close(): void
}
