import type { DatabaseSync } from 'node:sqlite'
import type { Amount } from '../../core/quota.ts'
import { requireRoom } from '../../core/quota.ts'
import type { Bucket, BucketId } from '../catalog.ts'
import { integer, integerOrNull, one, type Row, text } from './rows.ts'

/** Answers the bucket's id and makes the bucket if it does not exist; to be called within a transaction. */
export type EnsureBucket = (name: string, createdAt: number) => BucketId

export function prepareEnsureBucket(db: DatabaseSync): EnsureBucket {
  const insert = db.prepare('INSERT INTO buckets (name, created_at) VALUES (?, ?) ON CONFLICT DO NOTHING')
  const select = db.prepare('SELECT id FROM buckets WHERE name = ?')
  return (name, createdAt) => {
    insert.run(name, createdAt)
    return integer(one(select, name) ?? [], 0) as BucketId
  }
}

export const bucketColumns = 'name, total, bytes, reserved_items, reserved_bytes, max_items, max_bytes'

export const bucketOf = (row: Row): Bucket => ({
  name: text(row, 0),
  items: integer(row, 1),
  bytes: integer(row, 2),
  reservedItems: integer(row, 3),
  reservedBytes: integer(row, 4),
  maxItems: integerOrNull(row, 5),
  maxBytes: integerOrNull(row, 6),
})

/** The check of the quota that counts, within the transaction that adds; all throw Fault `quota-exceeded`. */
export interface Quotas {
  /** Requires room beside all items and everything reserved. */
  require(bucketId: BucketId, more: Amount): void
  /** The same, and sets it aside. What is negative is given back, and always can be. */
  reserve(bucketId: BucketId, more: Amount): void
  /** Gives back what was reserved, and requires room for it beside the items alone: it had been promised. */
  settle(bucketId: BucketId, reserved: Amount): void
}

export function prepareQuotas(db: DatabaseSync): Quotas {
  const select = db.prepare(`SELECT ${bucketColumns} FROM buckets WHERE id = ?`)
  const reserve = db.prepare(`UPDATE buckets
    SET reserved_items = reserved_items + ?, reserved_bytes = reserved_bytes + ? WHERE id = ?`)

  const find = (bucketId: BucketId): Bucket => {
    const row = one(select, bucketId)
    if (!row) throw new RangeError(`there is no bucket ${bucketId}`)
    return bucketOf(row)
  }
  const require: Quotas['require'] = (bucketId, more) => {
    const bucket = find(bucketId)
    const { items, bytes, reservedItems, reservedBytes } = bucket
    requireRoom(bucket, { items: items + reservedItems, bytes: bytes + reservedBytes }, more)
  }

  return {
    require,
    reserve(bucketId, more) {
      require(bucketId, more)
      reserve.run(more.items, more.bytes, bucketId)
    },
    settle(bucketId, reserved) {
      const bucket = find(bucketId)
      requireRoom(bucket, bucket, reserved)
      reserve.run(-reserved.items, -reserved.bytes, bucketId)
    },
  }
}
