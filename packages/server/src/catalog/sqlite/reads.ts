import type { DatabaseSync } from 'node:sqlite'
import { bucketDeleted } from '../../core/fault.ts'
import type { ItemId } from '../../core/media-id.ts'
import { pageSize } from '../../core/page.ts'
import { bucketColumns, liveBucketOf } from '../buckets.ts'
import {
  expiredColumn,
  expiredOfBucket,
  isLive,
  isPrivateColumn,
  itemColumns,
  readItem,
  unlessExpired,
} from '../item-columns.ts'
import type {
  Bucket,
  BucketId,
  Grant,
  Item,
  ItemPlace,
  ItemRows,
  ItemSelection,
  PageRows,
} from '../records.ts'
import { integer, itemIdOf, type Row, textOrNull } from '../rows.ts'
import { grantedColumns, readGrant } from '../tokens.ts'
import { prepareReadItems } from './item-lists.ts'
import type { LocateItem } from './item-locations.ts'
import { all, one } from './rows.ts'
import { prepareSnapshots } from './snapshot.ts'

/** Identifies a page, which is numbered from 1. */
export interface PageKey {
  readonly bucketId: BucketId
  readonly page: number
}

/** The reads of one connection. A read that begins a transaction also ends it. */
export interface Reads {
  /** The items that have expired at `now` are not counted. */
  findGrant(tokenHash: Uint8Array, now: number): Grant | null
  /** In the transaction in progress, or in one of its own. `isFirst`: the transaction has not read a page before. */
  page(key: PageKey, isFirst: boolean): PageRows
  items(selection: ItemSelection, after: ItemPlace | null, limit: number): ItemRows
  item(id: ItemId): Item | null
  bucket(id: BucketId): Bucket | null
}

export function prepareReads(db: DatabaseSync, locate: LocateItem): Reads {
  const findGrant = db.prepare(`SELECT tokens.id, buckets.id, scopes, expires_at, revoked_at, last_used_at,
    ${grantedColumns('?2')}
    FROM tokens JOIN buckets ON buckets.id = tokens.bucket_id WHERE hash = ?1`)
  const bucketState = db.prepare(
    `SELECT revision, total, next_seq, ${expiredColumn('?2')} FROM buckets WHERE id = ?1`,
  )
  const pageRows = db.prepare(`SELECT id, extension FROM items WHERE bucket_id = ? AND seq >= ?
    ORDER BY seq LIMIT ${pageSize} OFFSET ?`)
  const seqAt = db.prepare(
    'SELECT seq FROM items WHERE bucket_id = ? AND seq >= ? ORDER BY seq LIMIT 1 OFFSET ?',
  )
  const expiredBefore = db.prepare(`SELECT count(*) FROM items INDEXED BY items_item_expiry
    WHERE bucket_id = ? AND item_expires_at IS NOT NULL AND item_expires_at <= ? AND seq < ?`)
  const livePageRows =
    db.prepare(`SELECT id, extension FROM items WHERE bucket_id = ?1 AND seq >= ?2 AND ${isLive('?3')}
    ORDER BY seq LIMIT ${pageSize} OFFSET ?4`)
  const item =
    db.prepare(`SELECT ${itemColumns}, bucket_id, EXISTS (SELECT 1 FROM damaged WHERE damaged.id = items.id), content_id, ${isPrivateColumn}
    FROM items WHERE id = ?`)
  const bucket = db.prepare(`SELECT ${bucketColumns}, ${expiredOfBucket('?2')} FROM buckets WHERE id = ?1`)
  const readItems = prepareReadItems(db)
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
    const rows = found.map((row) => ({ id: itemIdOf(row, 0), extension: textOrNull(row, 1) }))
    return { revision, expired, total, rows }
  }

  /** The ranks count expired items. As many live items are skipped as expired ones precede the rank of the page. */
  function livePage(bucketId: BucketId, seq: number, skip: number): Row[] {
    const start = integer(one(seqAt, bucketId, seq, skip) ?? [], 0)
    const preceding = integer(one(expiredBefore, bucketId, now, start) ?? [], 0)
    return all(livePageRows, bucketId, start, now, preceding)
  }

  return {
    findGrant(tokenHash, now) {
      const row = one(findGrant, tokenHash, now)
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

    item(id) {
      const row = one(item, id)
      return row && unlessExpired(readItem(row))
    },

    bucket(id) {
      const row = one(bucket, id, Date.now())
      return row && liveBucketOf(row)
    },
  }
}
