import type { DatabaseSync } from 'node:sqlite'
import { bucketDeleted } from '../../core/fault.ts'
import type { MediaId } from '../../core/media-id.ts'
import { pageSize } from '../../core/page.ts'
import { bucketColumnCount, bucketColumns, bucketOf, liveBucketOf } from '../bucket-columns.ts'
import {
  expiredColumn,
  expiredOfBucket,
  isLive,
  isPrivateColumn,
  itemColumns,
  readMedia,
  unlessExpired,
} from '../item-columns.ts'
import type { SigningKey } from '../key-catalog.ts'
import { readKey, selectKeys } from '../key-columns.ts'
import type {
  Bucket,
  BucketId,
  Grant,
  IdempotentRequest,
  ItemPlace,
  ItemRows,
  ItemSelection,
  Media,
  NamedBucket,
  NewMedia,
  PageRows,
  TokenId,
  TrashedItem,
  TrashState,
} from '../records.ts'
import { integer, type Row, text, textOrNull } from '../rows.ts'
import { grantedColumns, readGrant, readToken } from '../token-columns.ts'
import type { TokenRecord } from '../token-records.ts'
import { readTrashed, readTrashState, trashedColumns, trashOf, trashStateColumns } from '../trash.ts'
import { prepareIdempotencyRecords } from './idempotency-records.ts'
import { prepareReadItems } from './item-lists.ts'
import type { LocateItem } from './item-locations.ts'
import { all, one } from './rows.ts'
import { prepareSnapshots } from './snapshot.ts'
import { prepareFindUnreferenced } from './unreferenced-ids.ts'
import { prepareUploadReads, type UploadReads } from './upload-reads.ts'

/** Identifies a page, which is numbered from 1. */
export interface PageKey {
  readonly bucketId: BucketId
  readonly page: number
}

/** The reads of one connection. A read that begins a transaction also ends it. */
export interface Reads extends UploadReads {
  epoch(): string
  /** The items that have expired at `now` are not counted. */
  findGrant(tokenHash: Uint8Array, now: number): Grant | null
  newUserGrant(bucket: string, id: TokenId): Grant | null
  /** In the transaction in progress, or in one of its own. `isFirst`: the transaction has not read a page before. */
  page(key: PageKey, isFirst: boolean): PageRows
  items(selection: ItemSelection, after: ItemPlace | null, limit: number): ItemRows
  media(id: MediaId): Media | null
  trashState(bucketId: BucketId): TrashState
  trash(bucketId: BucketId, after: number | null, limit: number, now: number): TrashedItem[]
  expiredTrash(now: number, limit: number): { bucketId: BucketId; id: MediaId }[]
  expiringBuckets(now: number): BucketId[]
  findRepeated(request: IdempotentRequest): readonly NewMedia[] | null
  findUnreferenced(ids: readonly MediaId[]): MediaId[]
  intents(): MediaId[]
  expiredIntents(): MediaId[]
  tombstones(): MediaId[]
  bucket(id: BucketId): Bucket | null
  bucketNamed(name: string): NamedBucket | null
  buckets(): Bucket[]
  token(id: TokenId): TokenRecord | null
  tokensAfter(bucketId: BucketId, after: TokenId | null, limit: number): TokenRecord[]
  tokens(bucket: string | null): TokenRecord[]
  signingKeys(): readonly SigningKey[]
  isNew(): boolean
  blobsIdentity(): string | null
  someWithBlobs(): MediaId[]
}

export function prepareReads(db: DatabaseSync, locate: LocateItem): Reads {
  const epoch = db.prepare("SELECT value FROM meta WHERE key = 'epoch'")
  const findGrant = db.prepare(`SELECT tokens.id, buckets.id, scopes, expires_at, revoked_at, last_used_at,
    ${grantedColumns('?2')}
    FROM tokens JOIN buckets ON buckets.id = tokens.bucket_id WHERE hash = ?1`)
  const newUserGrant = db.prepare(`SELECT ?3, id, '', NULL, NULL, NULL, ${grantedColumns('?2')}
    FROM buckets WHERE name = ?1 AND id > 0`)
  const bucketState = db.prepare(
    `SELECT revision, total, next_seq, ${expiredColumn('?2')} FROM buckets WHERE id = ?1`,
  )
  const pageRows = db.prepare(`SELECT id, extension FROM media WHERE bucket_id = ? AND seq >= ?
    ORDER BY seq LIMIT ${pageSize} OFFSET ?`)
  const seqAt = db.prepare(
    'SELECT seq FROM media WHERE bucket_id = ? AND seq >= ? ORDER BY seq LIMIT 1 OFFSET ?',
  )
  const expiredBefore = db.prepare(`SELECT count(*) FROM media INDEXED BY media_item_expiry
    WHERE bucket_id = ? AND item_expires_at IS NOT NULL AND item_expires_at <= ? AND seq < ?`)
  const livePageRows =
    db.prepare(`SELECT id, extension FROM media WHERE bucket_id = ?1 AND seq >= ?2 AND ${isLive('?3')}
    ORDER BY seq LIMIT ${pageSize} OFFSET ?4`)
  const media =
    db.prepare(`SELECT ${itemColumns}, bucket_id, EXISTS (SELECT 1 FROM damaged WHERE damaged.id = media.id), content_id, ${isPrivateColumn}
    FROM media WHERE id = ?`)
  const trashState = db.prepare(`SELECT ${trashStateColumns('?2')} WHERE buckets.id = ?1`)
  const trashed = db.prepare(`SELECT ${trashedColumns} FROM media
    WHERE bucket_id = ? AND seq < ? AND expires_at > ? ORDER BY seq DESC LIMIT ?`)
  const expiredTrash = db.prepare(`SELECT -bucket_id, id FROM media INDEXED BY media_expiry
    WHERE expires_at IS NOT NULL AND expires_at <= ? ORDER BY expires_at LIMIT ?`)
  const expiringBuckets = db.prepare('SELECT id FROM buckets WHERE next_expiry <= ? AND id > 0')
  const findUnreferenced = prepareFindUnreferenced(db)
  const intents = db.prepare('SELECT id FROM intents')
  const expiredIntents = db.prepare('SELECT id FROM intents WHERE expires_at <= ?')
  const tombstones = db.prepare('SELECT id FROM tombstones')
  const tokenRows = `SELECT tokens.id, buckets.name, tokens.name, scopes, tokens.created_at, expires_at,
    last_used_at, revoked_at FROM tokens JOIN buckets ON buckets.id = tokens.bucket_id`
  const token = db.prepare(`${tokenRows} WHERE tokens.id = ?`)
  const tokensAfter = db.prepare(`${tokenRows} WHERE tokens.bucket_id = ?1
    AND tokens.rowid > coalesce((SELECT rowid FROM tokens WHERE id = ?2), 0) ORDER BY tokens.rowid LIMIT ?3`)
  const tokens = db.prepare(`${tokenRows}
    WHERE buckets.name = ?1 OR ?1 IS NULL ORDER BY tokens.created_at, tokens.rowid`)
  const keys = db.prepare(selectKeys)
  const bucket = db.prepare(`SELECT ${bucketColumns}, ${expiredOfBucket('?2')} FROM buckets WHERE id = ?1`)
  const bucketNamed = db.prepare(`SELECT ${bucketColumns}, id FROM buckets WHERE name = ? AND id > 0`)
  const buckets = db.prepare(`SELECT ${bucketColumns} FROM buckets WHERE id > 0 ORDER BY name`)
  const idempotency = prepareIdempotencyRecords(db)
  const readItems = prepareReadItems(db)
  const isNew = db.prepare('SELECT NOT EXISTS (SELECT 1 FROM buckets)')
  const inSnapshot = prepareSnapshots(db).run

  /** The states that the transaction in progress has read for its pages. Replaced, not cleared (core/slab.ts). */
  let states = new Map<BucketId, Row>()
  /** When the transaction in progress has read its first page. */
  let now = 0

  function stateOf(bucketId: BucketId): Row {
    const known = states.get(bucketId)
    if (known) return known
    const bucket = one(bucketState, bucketId, now)
    if (!bucket) throw bucketDeleted()
    states.set(bucketId, bucket)
    return bucket
  }

  const readPage = (bucketId: BucketId, page: number): PageRows => {
    const bucket = stateOf(bucketId)
    const revision = integer(bucket, 0)
    const expired = integer(bucket, 3)
    const total = integer(bucket, 1) - expired
    // Above 2⁵³ the product is rounded, but exceeds every total.
    const first = (page - 1) * pageSize
    if (first >= total) return { revision, expired, total, rows: [] }
    const { seq, skip } = locate({ id: bucketId, revision, nextSeq: integer(bucket, 2) }, first)
    const found = expired === 0 ? all(pageRows, bucketId, seq, skip) : livePage(bucketId, seq, skip)
    const rows = found.map((row) => ({ id: mediaId(row, 0), extension: textOrNull(row, 1) }))
    return { revision, expired, total, rows }
  }

  /** The ranks count expired items. As many live items are skipped as expired ones precede the rank of the page. */
  function livePage(bucketId: BucketId, seq: number, skip: number): Row[] {
    const start = integer(one(seqAt, bucketId, seq, skip) ?? [], 0)
    const preceding = integer(one(expiredBefore, bucketId, now, start) ?? [], 0)
    return all(livePageRows, bucketId, start, now, preceding)
  }

  return {
    ...prepareUploadReads(db),
    epoch: () => text(one(epoch) ?? [], 0),

    findGrant(tokenHash, now) {
      const row = one(findGrant, tokenHash, now)
      return row && readGrant(row)
    },

    newUserGrant(bucket, id) {
      const row = one(newUserGrant, bucket, Date.now(), id)
      return row && readGrant(row)
    },

    page({ bucketId, page }, isFirst) {
      // SQLite ends the transaction of a tick on some errors. Pages after the error are read in transactions of their own.
      if (isFirst || !db.isTransaction) {
        states = new Map()
        now = Date.now()
      }
      return inSnapshot(() => readPage(bucketId, page))
    },

    items: (selection, after, limit) => inSnapshot(() => readItems(selection, after, limit)),

    media(id) {
      const row = one(media, id)
      return row && unlessExpired(readMedia(row))
    },

    expiringBuckets: (now) => all(expiringBuckets, now).map((row) => integer(row, 0) as BucketId),

    trashState(id) {
      const row = one(trashState, id, Date.now())
      if (!row) throw bucketDeleted()
      return readTrashState(row)
    },

    trash: (id, after, limit, now) =>
      all(trashed, trashOf(id), after ?? Number.MAX_SAFE_INTEGER, now, limit).map(readTrashed),

    expiredTrash: (now, limit) =>
      all(expiredTrash, now, limit).map((row) => ({ bucketId: bucketId(row, 0), id: mediaId(row, 1) })),

    findRepeated: (request) => idempotency.find(request),

    bucket(id) {
      const row = one(bucket, id, Date.now())
      return row && liveBucketOf(row)
    },

    bucketNamed(name) {
      const row = one(bucketNamed, name)
      return row && { ...bucketOf(row), id: bucketId(row, bucketColumnCount) }
    },

    buckets: () => all(buckets).map(bucketOf),

    findUnreferenced,
    intents: () => all(intents).map((row) => mediaId(row, 0)),
    expiredIntents: () => all(expiredIntents, Date.now()).map((row) => mediaId(row, 0)),
    tombstones: () => all(tombstones).map((row) => mediaId(row, 0)),

    token(id) {
      const row = one(token, id)
      return row && readToken(row)
    },

    tokensAfter: (bucketId, after, limit) => all(tokensAfter, bucketId, after, limit).map(readToken),

    tokens: (bucket) => all(tokens, bucket).map(readToken),

    signingKeys: () => all(keys).map(readKey),

    blobsIdentity() {
      const row = one(db.prepare("SELECT value FROM meta WHERE key = 'blobs'"))
      return row ? text(row, 0) : null
    },
    someWithBlobs: () =>
      ['ASC', 'DESC'].flatMap((order) =>
        all(
          db.prepare(`SELECT id FROM media WHERE sha256 IS NOT NULL AND content_id IS NULL
            ORDER BY bucket_id ${order}, seq ${order} LIMIT 20`),
        ).map((row) => mediaId(row, 0)),
      ),
    isNew: () => integer(one(isNew) ?? [], 0) === 1,
  }
}

// The columns contain only ids of these kinds.
const mediaId = (row: Row, column: number) => text(row, column) as MediaId
const bucketId = (row: Row, column: number) => integer(row, column) as BucketId
