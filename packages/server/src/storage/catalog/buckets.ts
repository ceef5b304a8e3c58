import { randomInt } from 'node:crypto'
import { type MetadataRemoval, settingsChanged, settingsTag } from '../../core/bucket-settings.ts'
import { Fault } from '../../core/faults.ts'
import type { Actor } from '../../core/token-rules.ts'
import { type Crop, isCrop } from '../../core/variants.ts'
import type { AuditEvent } from './audit/audit-events.ts'
import { auditedWritesOf, ofBucketNamed } from './declarations.ts'
import type {
  Bucket,
  BucketId,
  BucketSettings,
  BucketWithTrash,
  NamedBucket,
  Servability,
} from './records.ts'
import {
  all,
  bucketIdOf,
  type EngineName,
  eachEngine,
  first,
  integer,
  integerOrNull,
  type Query,
  type Row,
  record,
  selectColumns,
  text,
  textOrNull,
  type Work,
  write,
} from './statements.ts'

/** Reads of which engines have their own version. */
export interface BucketReads {
  bucket(id: BucketId): Bucket | null
}

/** The columns of `buckets` that store the settings. */
const columnOf: { readonly [Name in keyof BucketSettings]: string } = {
  maxItems: 'max_items',
  maxBytes: 'max_bytes',
  maxFileSize: 'max_file_size',
  types: 'types',
  trashDays: 'trash_days',
  isPrivate: 'private',
  signedPages: 'signed_pages',
  publicKeys: 'public_keys',
  publicList: 'public_list',
  urlUploads: 'url_uploads',
  variants: 'variants',
  publicVariants: 'public_variants',
  crop: 'crop',
  removesMetadata: 'remove_metadata',
  itemDays: 'item_days',
}

export const settingColumns: readonly string[] = Object.values(columnOf)
const settingPlaces = selectColumns(columnOf).at

/** Reads the column `remove_metadata`: 0 for off, 1 for on, 2 for on except the time at which a picture was taken. */
export const readRemoval = (row: Row, index: number): MetadataRemoval =>
  integer(row, index) === 2 ? 'except-taken' : integer(row, index) === 1

/** The value of the column `remove_metadata` that readRemoval reads. */
const writtenRemoval = (removal: MetadataRemoval): number =>
  removal === 'except-taken' ? 2 : Number(removal)

/** Reads the columns `settingColumns`; the first of them has the index `from`. */
export const readBucketSettings = (row: Row, from: number): BucketSettings => ({
  maxItems: integerOrNull(row, from + settingPlaces.maxItems),
  maxBytes: integerOrNull(row, from + settingPlaces.maxBytes),
  maxFileSize: integerOrNull(row, from + settingPlaces.maxFileSize),
  types: readTexts(row, from + settingPlaces.types),
  trashDays: integer(row, from + settingPlaces.trashDays),
  isPrivate: integer(row, from + settingPlaces.isPrivate) === 1,
  signedPages: integer(row, from + settingPlaces.signedPages) === 1,
  publicKeys: integer(row, from + settingPlaces.publicKeys) === 1,
  publicList: integer(row, from + settingPlaces.publicList) === 1,
  urlUploads: integer(row, from + settingPlaces.urlUploads) === 1,
  variants: readTexts(row, from + settingPlaces.variants),
  publicVariants: readTexts(row, from + settingPlaces.publicVariants),
  crop: readCrop(row, from + settingPlaces.crop),
  removesMetadata: readRemoval(row, from + settingPlaces.removesMetadata),
  itemDays: integerOrNull(row, from + settingPlaces.itemDays),
})

/** Reads texts that are separated by spaces, such as the types of a bucket; null for none. */
export const readTexts = (row: Row, index: number): readonly string[] | null =>
  textOrNull(row, index)?.split(' ') ?? null

function readCrop(row: Row, index: number): Crop | null {
  const crop = textOrNull(row, index)
  return crop !== null && isCrop(crop) ? crop : null
}

/** Of a row of `buckets`: its options about pictures as StoredPictures. */
const picturesText = `coalesce(crop, '') || ';' || coalesce(public_variants, '') || ';' || coalesce(variants, '')`
const hasPictureOptions = '(variants IS NOT NULL OR public_variants IS NOT NULL OR crop IS NOT NULL)'
export const picturesColumn = `CASE WHEN ${hasPictureOptions} THEN ${picturesText} END`

/** The buckets that have such options, with these. */
export const listPictureOptions = (): Query<{ readonly id: BucketId; readonly pictures: string }[]> =>
  all(
    (row) => ({ id: readId(row), pictures: text(row, 1) }),
    `SELECT id, ${picturesText} FROM buckets WHERE id > 0 AND ${hasPictureOptions} ORDER BY id`,
  )

/** The same of the bucket of a row of `items`. */
export const picturesOfItem = `(SELECT ${picturesText} FROM buckets WHERE buckets.id = items.bucket_id AND ${hasPictureOptions})`

/** Of the bucket of a row of `items`: as `private`, and 4 more if it has options about pictures. An item without a bucket is not public. */
export const stateOfBucket = `coalesce((SELECT private + CASE WHEN ${hasPictureOptions} THEN 4 ELSE 0 END FROM buckets WHERE buckets.id = items.bucket_id), 1)`

/** Whether an item can be served, by `stateOfBucket`. */
export function servabilityOf(
  ofBucket: number,
  { isRenamed, hasFocus }: { readonly isRenamed: boolean; readonly hasFocus: boolean },
): Servability {
  const state = ofBucket & 3
  if (state > 0) return state === 1 ? 'private' : 'not'
  return isRenamed ? 'renamed' : ofBucket > 0 || hasFocus ? 'styled' : 'servable'
}

/** Those of the new settings that differ from the current ones. */
const changedSettings = (
  current: BucketSettings,
  settings: Partial<BucketSettings>,
): Partial<BucketSettings> =>
  Object.fromEntries(
    Object.entries(settings).filter(
      ([name, value]) => `${current[name as keyof BucketSettings]}` !== `${value}`,
    ),
  )

interface ColumnValue {
  readonly column: string
  readonly value: number | string | null
}

/** The columns of the given settings, with their new values. */
export function settingValues(settings: Partial<BucketSettings>): ColumnValue[] {
  const { removesMetadata } = settings
  const written = {
    ...settings,
    removesMetadata: removesMetadata === undefined ? undefined : writtenRemoval(removesMetadata),
  }
  return Object.entries(columnOf).flatMap(([name, column]): ColumnValue[] => {
    const value = written[name as keyof BucketSettings]
    if (value === undefined) return []
    if (value !== null && typeof value === 'object') return [{ column, value: value.join(' ') }]
    return [{ column, value: typeof value === 'boolean' ? Number(value) : value }]
  })
}

// Without expired items that are counted, whose quota is free.
const {
  text: counted,
  at,
  end,
} = selectColumns({
  ...{ name: 'name', items: 'total - counted_items', bytes: 'bytes - counted_bytes' },
  ...{ reservedItems: 'reserved_items', reservedBytes: 'reserved_bytes' },
})

export const bucketColumns = `${counted}, ${settingColumns.join(', ')}`
export const bucketColumnCount = end + settingColumns.length

export const bucketOf = (row: Row): Bucket => ({
  name: text(row, at.name),
  items: integer(row, at.items),
  bytes: integer(row, at.bytes),
  reservedItems: integer(row, at.reservedItems),
  reservedBytes: integer(row, at.reservedBytes),
  ...readBucketSettings(row, end),
})

/** The places of `expiredOfBucket`, `trashColumns` and `expiredOfTrash`, which follow `bucketColumns` in this order. */
export const expiredPlaces = selectColumns(
  { items: '', bytes: '', trashItems: '', trashBytes: '', expiredTrashItems: '', expiredTrashBytes: '' },
  bucketColumnCount,
).at

/** Without the items that have expired: reads `bucketColumns` and `expiredOfBucket`. */
export function liveBucketOf(row: Row): Bucket {
  const bucket = bucketOf(row)
  return {
    ...bucket,
    items: bucket.items - integer(row, expiredPlaces.items),
    bytes: bucket.bytes - integer(row, expiredPlaces.bytes),
  }
}

/** Each row of `buckets` with `trashColumns`. */
export const bucketsWithTrash = `buckets
  LEFT JOIN (SELECT id AS trash_id, total AS trash_items, bytes AS trash_bytes FROM buckets) AS trash ON trash_id = -buckets.id`
export const trashColumns = 'coalesce(trash_items, 0), coalesce(trash_bytes, 0)'

/** As liveBucketOf, with the trash: reads `trashColumns` and `expiredOfTrash` after the same columns. */
export function bucketWithTrashOf(row: Row): BucketWithTrash {
  return {
    ...liveBucketOf(row),
    trash: {
      items: integer(row, expiredPlaces.trashItems) - integer(row, expiredPlaces.expiredTrashItems),
      bytes: integer(row, expiredPlaces.trashBytes) - integer(row, expiredPlaces.expiredTrashBytes),
    },
  }
}

/** Of a row of `buckets`: that its deletion has not begun (bucket-removal.ts). The items of a deleted bucket are no longer found. */
export const isNotDeleted = 'private < 2'

/** Whether this is the name of a bucket whose deletion has begun. */
export const isDeletedName = (name: string): boolean => name.endsWith('/deleted')

export const findBucketNamed = (name: string): Query<NamedBucket | null> =>
  first(
    (row) => ({ ...bucketOf(row), id: bucketIdOf(row, bucketColumnCount) }),
    `SELECT ${bucketColumns}, id FROM buckets WHERE name = $1 AND id > 0 AND ${isNotDeleted}`,
    name,
  )

/** The id of the bucket, which cannot be deleted until the end of the transaction; null if there is no such bucket. */
export const findBucket = (name: string): Query<BucketId | null> =>
  first(readId, `SELECT id FROM buckets WHERE name = $1 AND id > 0 AND ${isNotDeleted} FOR KEY SHARE`, name)

/** The id of the bucket, which cannot be deleted until the end of the transaction; null if it is deleted. */
export const findLiveBucket = (id: BucketId): Query<BucketId | null> =>
  first(readId, `SELECT id FROM buckets WHERE id = $1 AND ${isNotDeleted} FOR KEY SHARE`, id)

const readId = (row: Row): BucketId => bucketIdOf(row, 0)

// The id of a deleted bucket is not reused: with it, a cached page of the old bucket would be served for the new one.
const insertion = {
  sqlite: `INSERT INTO buckets (id, name, created_at, creation_key, creation)
    SELECT 1 + max(coalesce((SELECT max(id) FROM buckets), 0),
      coalesce((SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'last_bucket_id'), 0)), $1, $2, $3, $4
    WHERE true ON CONFLICT DO NOTHING RETURNING id`,
  postgres: `INSERT INTO buckets (name, created_at, creation_key, creation) VALUES ($1, $2, $3, $4)
    ON CONFLICT DO NOTHING RETURNING id`,
}

/** Settings that are left out have their defaults. False if a bucket has this name. Waits for a transaction that is creating it. */
export function* createBucket(
  name: string,
  settings: Partial<BucketSettings>,
  createdAt: number,
  by?: Actor,
): Work<boolean> {
  return (yield* insertBucket(name, settings, createdAt, null, by)) !== null
}

/** As createBucket, by a request with an idempotency key, unless that is null. Null if a bucket has this name or this key. */
export function* insertBucket(
  name: string,
  settings: Partial<BucketSettings>,
  createdAt: number,
  creation: { readonly key: Uint8Array; readonly request: Uint8Array } | null,
  by?: Actor,
): Work<BucketId | null> {
  const { key = null, request = null } = creation ?? {}
  const id = yield* first(readId, insertion, name, createdAt, key, request)
  if (id === null) return null
  yield* record(by, (by) => ({ ...settingsEvent(id, name, settings, by), action: 'bucket-create' }))
  yield* setBucket(name, settings)
  return id
}

/**
 * Changes the given settings; false if there is no such bucket. Throws Fault `precondition-failed` unless settingsTag of the bucket is `expected`, if
 * that is given.
 */
export function* setBucket(
  name: string,
  settings: Partial<BucketSettings>,
  by?: Actor,
  expected: string | null = null,
): Work<boolean> {
  const bucket = yield* first(
    (row) => ({ id: readId(row), current: readBucketSettings(row, 1) }),
    `SELECT ${['id', ...settingColumns].join(', ')} FROM buckets WHERE name = $1 AND id > 0 AND ${isNotDeleted} FOR NO KEY UPDATE`,
    name,
  )
  if (bucket === null) return false
  const { id, current } = bucket
  requireTag(id, current, expected)
  const changed = changedSettings(current, settings)
  const values = settingValues(changed)
  if (values.length === 0) return true
  const assignments = values.map(({ column }, index) => `${column} = $${index + 2}`).join(', ')
  yield* write(
    `UPDATE buckets SET ${assignments} WHERE id = $1`,
    ...[id, ...values.map(({ value }) => value)],
  )
  yield* record(by, (by) => settingsEvent(id, name, changed, by))
  return true
}

/** Throws Fault `precondition-failed` unless settingsTag of the bucket is `expected`; null expects nothing. */
export function requireTag(id: BucketId, settings: BucketSettings, expected: string | null): void {
  if (expected !== null && settingsTag(id, settings) !== expected) throw settingsChanged()
}

/** Revisions are raised by a random step up to this, so that data which have gone back do not repeat a revision for another state. */
const maxStep = 2 ** 20

/** A step of a revision, for writes whose numbers the program computes. */
export const revisionStep = (): number => randomInt(1, maxStep + 1)

/** The revision after a change of the items of a bucket. */
export const raisedRevision = {
  sqlite: `revision + 1 + (random() & ${maxStep - 1})`,
  postgres: 'revision + revision_step()',
} as const

/** The function `revision_step` of PostgreSQL. */
export const stepFunction = `CREATE FUNCTION revision_step() RETURNS int8
LANGUAGE sql VOLATILE AS $$ SELECT 1 + floor(random() * ${maxStep})::int8 $$;`

/**
 * Reads pass by each expired item that is not counted (items/expired-items.ts), while all other requests wait. So counts of them end after the next one.
 */
export const maxExpired = 10_000

/** In place of the number of expired items of a bucket with more than `maxExpired` that are not counted. */
const tooMany = Number.MAX_SAFE_INTEGER

type ExpiredValue = 'items' | 'bytes'

/**
 * Of `bucket`: the items that have expired at `now` and are neither removed nor counted, `maxExpired` + 1 of them at the most. The plus removes the
 * affinity of a column, with which SQLite compares only the first term by the index, and passes by all counted items that expired at the same time.
 */
const uncounted = (column: string, bucket: string, now: string): string =>
  `(SELECT items.${column} FROM buckets AS counted JOIN items ON items.bucket_id = counted.id
    WHERE counted.id = ${bucket} AND item_expires_at IS NOT NULL AND item_expires_at <= ${now}
      AND (item_expires_at, items.seq) > (+counted.counted_expiry, +counted.counted_seq) LIMIT ${maxExpired + 1}) AS expired`

/** Of `bucket`: the number or the bytes of the items that have expired at `now` and are neither removed nor counted. */
export const uncountedQuery = (value: ExpiredValue, bucket: string, now: string): string =>
  value === 'items'
    ? `SELECT count(*) FROM ${uncounted('seq', bucket, now)}`
    : `SELECT CAST(coalesce(sum(size), 0) AS bigint) FROM ${uncounted('size', bucket, now)}`

/** The same with those that are counted. */
export const expiredQuery = (value: ExpiredValue, bucket: string, now: string): string => {
  const counted = `coalesce((SELECT counted_${value} FROM buckets AS counted WHERE counted.id = ${bucket}), 0)`
  if (value === 'bytes') return `SELECT ${counted} + (${uncountedQuery(value, bucket, now)})`
  return `SELECT CASE WHEN count(*) > ${maxExpired} THEN ${tooMany} ELSE count(*) + ${counted} END FROM ${uncounted('seq', bucket, now)}`
}

/**
 * As one of these queries, of a row of `buckets`; `bucket` is the id of its bucket or its trash, and `now` a parameter. A function on PostgreSQL: the
 * query is seldom run, but each statement with it would have the estimated cost of a large table, for which PostgreSQL plans it again for each
 * execution. Planning takes longer than the statement.
 */
const ifExpired = (
  engine: EngineName,
  [kind, value]: readonly ['uncounted' | 'expired', ExpiredValue],
  bucket: string,
  now: string,
): string => {
  const query = kind === 'expired' ? expiredQuery : uncountedQuery
  return `CASE WHEN buckets.next_expiry <= ${now} THEN ${
    engine === 'sqlite' ? `(${query(value, bucket, now)})` : `${kind}_${value}(${bucket}, ${now})`
  } ELSE 0 END`
}

/** How many items of the bucket have expired at `now`, a parameter, and are not removed yet, or a number that requireFewExpired refuses. */
export const expiredColumn = (engine: EngineName, now: string): string =>
  ifExpired(engine, ['expired', 'items'], 'buckets.id', now)
/** Of the items that `bucketColumns` include, those that have expired, and the bytes of these and of all expired ones in the trash. */
export const expiredOfBucket = (engine: EngineName, now: string): string =>
  `${ifExpired(engine, ['uncounted', 'items'], 'buckets.id', now)},
    ${ifExpired(engine, ['uncounted', 'bytes'], 'buckets.id', now)} + ${ifExpired(engine, ['expired', 'bytes'], '-buckets.id', now)}`
/** As expiredColumn, of the trash, and the bytes of these items. */
export const expiredOfTrash = (engine: EngineName, now: string): string =>
  `${ifExpired(engine, ['expired', 'items'], '-buckets.id', now)}, ${ifExpired(engine, ['expired', 'bytes'], '-buckets.id', now)}`

/** The number or the bytes of all items of a bucket or a trash that have expired at `$1`, also of those that are counted. */
const allExpired = (value: 'count(*)' | 'sum(size)', bucket: string): string =>
  `(SELECT CAST(coalesce(${value}, 0) AS bigint) FROM items
    WHERE bucket_id = ${bucket} AND item_expires_at IS NOT NULL AND item_expires_at <= $1)`

const ifAnyExpired = (amount: string): string => `CASE WHEN next_expiry <= $1 THEN ${amount} ELSE 0 END`

// As findBucketWithTrash, but exact: where no service runs, nothing counts or removes what has expired.
const bucketList = `SELECT ${bucketColumns}, ${ifAnyExpired(`${allExpired('count(*)', 'buckets.id')} - counted_items`)},
    ${ifAnyExpired(`${allExpired('sum(size)', 'buckets.id')} - counted_bytes + ${allExpired('sum(size)', '-buckets.id')}`)},
    ${trashColumns}, ${ifAnyExpired(allExpired('count(*)', '-buckets.id'))}, ${ifAnyExpired(allExpired('sum(size)', '-buckets.id'))}
  FROM ${bucketsWithTrash} WHERE id > 0 AND ${isNotDeleted} ORDER BY name`

/** By name. The figures are exact; it takes a second for some hundred thousand expired items. */
export const listBuckets = (): Query<BucketWithTrash[]> => all(bucketWithTrashOf, bucketList, Date.now())

export function* hasPrivateBuckets(): Query<boolean> {
  return (yield* first(() => true, 'SELECT 1 FROM buckets WHERE private = 1 AND id > 0 LIMIT 1')) ?? false
}

/** Items of all buckets that have expired and are not removed yet; of those that are not counted, `maxExpired` + 1 for each bucket. */
export const expiredOfAll = eachEngine(
  (
    engine,
  ) => `SELECT coalesce(sum(counted_items + ${ifExpired(engine, ['uncounted', 'items'], 'buckets.id', '$1')}), 0)::int8
    FROM buckets WHERE next_expiry <= $1 OR counted_items > 0`,
)

/** Throws Fault `catalog-busy` for a bucket with more expired items than reads pass by (docs/interface.md E2). */
function requireFewExpired(expired: number): void {
  if (hasManyExpired({ expired })) throw tooManyExpired()
}

/** Whether more items of the bucket have expired than reads pass by. */
export const hasManyExpired = ({ expired }: { readonly expired: number }): boolean => expired >= tooMany

export const tooManyExpired = (): Fault =>
  new Fault('catalog-busy', 'Many items of this bucket have expired and are being counted; try again.')

/**
 * Identifies a state of the lists of a bucket: its revision, and how many of its items have expired since and are not removed yet. They
 * expire in the order of their times, so their number identifies them. Throws as requireFewExpired.
 */
export function listState({
  revision,
  expired,
}: {
  readonly revision: number
  readonly expired: number
}): string {
  requireFewExpired(expired)
  return expired === 0 ? `${revision}` : `${revision}-${expired}`
}

const settingsEvent = (
  bucketId: BucketId,
  name: string,
  settings: Partial<BucketSettings>,
  by: Actor,
): AuditEvent => ({
  action: 'bucket-set',
  by,
  bucketId,
  target: null,
  name,
  detail: Object.fromEntries(settingValues(settings).map(({ column, value }) => [column, value])),
})

/**
 * The arithmetic of the rank tree. Items of a bucket are numbered 0, 1, 2, …; `leaf` numbers make a leaf block,
 * and a node of level n holds `fanOut` counters of the live items under its children, which are leaf blocks
 * for level 1 and nodes of level n − 1 above.
 */
export interface RankShape {
  readonly leaf: number
  readonly fanOut: number
}

/** 128 counters are 512 bytes: a row that fits SQLite's page without overflow. Three levels hold 134 million items. */
export const defaultShape: RankShape = { leaf: 64, fanOut: 128 }

/** How many sequence numbers one counter of this level covers. */
const childWidth = (shape: RankShape, level: number): number => shape.leaf * shape.fanOut ** (level - 1)

/** The level whose node 0 covers all numbers below `nextSeq`. */
export function topLevel(shape: RankShape, nextSeq: number): number {
  let level = 1
  while (childWidth(shape, level + 1) < nextSeq) level++
  return level
}

/** The node of a level that covers this number. */
export const slotOf = (shape: RankShape, level: number, seq: number): number =>
  Math.floor(seq / childWidth(shape, level + 1))

/** The counter of that node that covers this number. */
export const indexOf = (shape: RankShape, level: number, seq: number): number =>
  Math.floor(seq / childWidth(shape, level)) % shape.fanOut

export const reads = { findBucketNamed, listBuckets, hasPrivateBuckets, listPictureOptions }

export const writes = {
  ...auditedWritesOf({ createBucket }),
  ...auditedWritesOf({ setBucket }, { locks: ofBucketNamed }),
}
