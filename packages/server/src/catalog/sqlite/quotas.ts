import type { DatabaseSync } from 'node:sqlite'
import { bucketDeleted } from '../../core/fault.ts'
import { requireWithinQuota } from '../../core/quota.ts'
import { bucketColumns, bucketOf } from '../buckets.ts'
import type { Bucket, BucketId } from '../records.ts'
import type { EngineChanges } from '../statements.ts'
import { one } from './rows.ts'

/** The authoritative quota check, within the transaction that adds items. */
export type Quotas = Pick<EngineChanges, 'requireRoom' | 'requireReserved' | 'reserve'>

export function prepareQuotas(db: DatabaseSync): Quotas {
  const select = db.prepare(`SELECT ${bucketColumns} FROM buckets WHERE id = ?`)
  const reserve = db.prepare(`UPDATE buckets
    SET reserved_items = reserved_items + ?, reserved_bytes = reserved_bytes + ? WHERE id = ?`)

  const find = (bucketId: BucketId): Bucket => {
    const row = one(select, bucketId)
    if (!row) throw bucketDeleted()
    return bucketOf(row)
  }

  return {
    requireRoom(bucketId, more) {
      const bucket = find(bucketId)
      const { items, bytes, reservedItems, reservedBytes } = bucket
      requireWithinQuota(bucket, { items: items + reservedItems, bytes: bytes + reservedBytes }, more)
    },
    requireReserved(bucketId, reserved) {
      const bucket = find(bucketId)
      requireWithinQuota(bucket, bucket, reserved)
    },
    reserve(bucketId, { items, bytes }) {
      reserve.run(items, bytes, bucketId)
    },
  }
}
