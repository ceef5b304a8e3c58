import type { DatabaseSync } from 'node:sqlite'
import type { Actor } from '../../core/actor.ts'
import { bucketDeleted } from '../../core/fault.ts'
import { type Amount, requireWithinQuota } from '../../core/quota.ts'
import { bucketCreateEvent, bucketSetEvent } from '../audit-log/events.ts'
import { bucketColumns, bucketOf } from '../bucket-columns.ts'
import { changedSettings, readBucketSettings, settingColumns, settingValues } from '../bucket-settings.ts'
import type { Bucket, BucketId, BucketSettings } from '../records.ts'
import { integer } from '../rows.ts'
import { prepareRecordEvents } from './audit-log.ts'
import { one } from './rows.ts'

/** To be called within a transaction. Records changes in the audit log, if they have an actor. */
export interface BucketRows {
  /** Returns the bucket's id, and creates the bucket if it does not exist. */
  ensure(name: string, createdAt: number): BucketId
  find(name: string): BucketId | null
  /** False if the bucket exists. */
  create(name: string, settings: Partial<BucketSettings>, createdAt: number, by?: Actor): boolean
  /** Changes the given settings; false if there is no such bucket. */
  set(name: string, settings: Partial<BucketSettings>, by?: Actor): boolean
}

export function prepareBucketRows(db: DatabaseSync): BucketRows {
  // The id of a deleted bucket is not reused: see bucket-deletion.ts.
  const insert = db.prepare(`INSERT INTO buckets (id, name, created_at)
    SELECT 1 + max(coalesce((SELECT max(id) FROM buckets), 0),
      coalesce((SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'last_bucket_id'), 0)), ?, ?
    WHERE true ON CONFLICT (name) DO NOTHING`)
  const select = db.prepare('SELECT id FROM buckets WHERE name = ? AND id > 0')

  const current = db.prepare(`SELECT ${settingColumns.join(', ')} FROM buckets WHERE id = ?`)
  const record = prepareRecordEvents(db)

  const find = (name: string): BucketId | null => {
    const row = one(select, name)
    return row && (integer(row, 0) as BucketId)
  }

  const set: BucketRows['set'] = (name, settings, by) => {
    const id = find(name)
    if (id === null) return false
    const row = one(current, id) ?? []
    const changed = changedSettings(readBucketSettings(row, 0), settings)
    for (const { column, value } of settingValues(changed))
      db.prepare(`UPDATE buckets SET ${column} = ? WHERE name = ?`).run(value, name)
    if (by !== undefined && Object.keys(changed).length > 0) record([bucketSetEvent(id, name, changed, by)])
    return true
  }

  const create: BucketRows['create'] = (name, settings, createdAt, by) => {
    const isNew = insert.run(name, createdAt).changes === 1
    const id = find(name)
    if (isNew && id !== null && by !== undefined) record([bucketCreateEvent(id, name, settings, by)])
    if (isNew) set(name, settings)
    return isNew
  }

  return {
    find,
    ensure(name, createdAt) {
      create(name, {}, createdAt)
      return integer(one(select, name) ?? [], 0) as BucketId
    },
    create,
    set,
  }
}

/** The authoritative quota check, within the transaction that adds items. All methods throw Fault `quota-exceeded`. */
export interface Quotas {
  /** Requires that the items, all reservations and `more` fit. */
  requireRoom(bucketId: BucketId, more: Amount): void
  /** Also reserves `more`. Negative amounts release quota and never fail. */
  reserve(bucketId: BucketId, more: Amount): void
  /** Releases the reservation, and requires that the items and it fit. Other reservations do not count, because this one came first. */
  settle(bucketId: BucketId, reserved: Amount): void
}

export function prepareQuotas(db: DatabaseSync): Quotas {
  const select = db.prepare(`SELECT ${bucketColumns} FROM buckets WHERE id = ?`)
  const reserve = db.prepare(`UPDATE buckets
    SET reserved_items = reserved_items + ?, reserved_bytes = reserved_bytes + ? WHERE id = ?`)

  const find = (bucketId: BucketId): Bucket => {
    const row = one(select, bucketId)
    if (!row) throw bucketDeleted()
    return bucketOf(row)
  }
  const requireRoom: Quotas['requireRoom'] = (bucketId, more) => {
    const bucket = find(bucketId)
    const { items, bytes, reservedItems, reservedBytes } = bucket
    requireWithinQuota(bucket, { items: items + reservedItems, bytes: bytes + reservedBytes }, more)
  }

  return {
    requireRoom,
    reserve(bucketId, more) {
      requireRoom(bucketId, more)
      reserve.run(more.items, more.bytes, bucketId)
    },
    settle(bucketId, reserved) {
      const bucket = find(bucketId)
      requireWithinQuota(bucket, bucket, reserved)
      reserve.run(-reserved.items, -reserved.bytes, bucketId)
    },
  }
}
