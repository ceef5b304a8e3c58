import type { DatabaseSync } from 'node:sqlite'
import type { ItemId } from '../../core/media-id.ts'
import type { BucketId, RemovedItems } from '../records.ts'
import { integer } from '../rows.ts'
import { expiryOf, trashName, trashOf } from '../trash.ts'
import { type ItemTable, prepareRefreshExpiry } from './media-rows.ts'
import type { Quotas } from './quotas.ts'
import type { Ranks } from './ranks.ts'
import { all, one } from './rows.ts'

/** Items of a bucket and of its trash; to be called within a transaction. */
export interface TrashRows {
  /** Whether deleted items of the bucket are moved to its trash. */
  hasTrash(bucketId: BucketId): boolean
  /** Removes items, or moves them to the trash of a bucket that has one. */
  remove(bucketId: BucketId, ids: readonly ItemId[], now: number): RemovedItems
  /** Moves the items that have not expired back to the bucket. Returns their ids. Throws Fault `quota-exceeded`. */
  restore(bucketId: BucketId, ids: readonly ItemId[], now: number): ItemId[]
  /** Removes items of the trash permanently. */
  purge(bucketId: BucketId, ids: readonly ItemId[]): RemovedItems
}

export function prepareTrash(
  db: DatabaseSync,
  itemTable: ItemTable,
  ranks: Ranks,
  quotas: Quotas,
): TrashRows {
  const days = db.prepare('SELECT trash_days FROM buckets WHERE id = ?')
  const counters = db.prepare('SELECT total, next_seq, bytes FROM buckets WHERE id = ?')
  const create = db.prepare(`INSERT INTO buckets (id, name, created_at) VALUES (?, ?, ?)
    ON CONFLICT (id) DO NOTHING`)
  const find = db.prepare('SELECT seq, size FROM items WHERE id = ? AND bucket_id = ?')
  const findTrashed = db.prepare(`SELECT seq, size, home_seq FROM items
    WHERE id = ? AND bucket_id = ? AND expires_at > ?`)
  const moveOut = db.prepare(`UPDATE items SET bucket_id = ?1, seq = ?2, home_seq = seq, deleted_at = ?3,
    expires_at = min(?4, coalesce(item_expires_at, ?4)) WHERE bucket_id = ?5 AND seq = ?6`)
  const moveBack =
    db.prepare(`UPDATE items SET bucket_id = ?, seq = home_seq, home_seq = NULL, deleted_at = NULL,
    expires_at = NULL, edited = ? WHERE bucket_id = ? AND seq = ?`)
  const change = db.prepare(`UPDATE buckets SET revision = revision + 1, total = total + ?, bytes = bytes + ?,
    next_seq = next_seq + ? WHERE id = ? RETURNING revision`)
  const refreshExpiry = prepareRefreshExpiry(db)
  const release = db.prepare('UPDATE buckets SET bytes = bytes - ? WHERE id = ?')

  const countersOf = (bucketId: BucketId) => {
    const row = one(counters, bucketId)
    return row && { total: integer(row, 0), nextSeq: integer(row, 1), bytes: integer(row, 2) }
  }
  const ascending = (seqs: readonly number[]) => seqs.toSorted((one, other) => one - other)
  const sum = (numbers: readonly number[]) => numbers.reduce((all, number) => all + number, 0)

  const daysOf = (bucketId: BucketId) => integer(one(days, bucketId) ?? [0], 0)

  return {
    hasTrash: (bucketId) => daysOf(bucketId) > 0,

    remove(bucketId, ids, now) {
      const trashDays = daysOf(bucketId)
      if (trashDays === 0) return itemTable.removeByIds(bucketId, ids)
      const found = ids.flatMap((id) =>
        all(find, id, bucketId).map((row) => ({ id, seq: integer(row, 0), size: integer(row, 1) })),
      )
      if (found.length === 0) return { ids: [], tombstones: [] }
      const trash = trashOf(bucketId)
      create.run(trash, trashName(bucketId), now)
      const [home, target] = [countersOf(bucketId), countersOf(trash)]
      if (!home || !target) throw new RangeError(`bucket ${bucketId} has no trash`)
      const seqs = ascending(found.map(({ seq }) => seq))
      const expiry = expiryOf(now, trashDays)
      for (const [index, seq] of seqs.entries())
        moveOut.run(trash, target.nextSeq + index, now, expiry, bucketId, seq)
      ranks.remove(bucketId, home.nextSeq, seqs)
      ranks.add(trash, target.total, target.nextSeq, seqs.length)
      one(change, -seqs.length, 0, 0, bucketId)
      one(change, seqs.length, sum(found.map(({ size }) => size)), seqs.length, trash)
      return { ids: found.map(({ id }) => id), tombstones: [] }
    },

    restore(bucketId, ids, now) {
      const trash = trashOf(bucketId)
      const found = ids.flatMap((id) =>
        all(findTrashed, id, trash, now).map((row) => ({
          id,
          seq: integer(row, 0),
          size: integer(row, 1),
          home: integer(row, 2),
        })),
      )
      const [home, source] = [countersOf(bucketId), countersOf(trash)]
      if (found.length === 0 || !home || !source) return []
      // Their bytes are counted already.
      quotas.requireRoom(bucketId, { items: found.length, bytes: 0 })
      const revision = integer(one(change, found.length, 0, 0, bucketId) ?? [], 0)
      for (const { seq } of found) moveBack.run(bucketId, revision, trash, seq)
      const homes = ascending(found.map((item) => item.home))
      ranks.restore(bucketId, home.nextSeq, homes)
      ranks.remove(trash, source.nextSeq, ascending(found.map(({ seq }) => seq)))
      one(change, -found.length, -sum(found.map(({ size }) => size)), 0, trash)
      refreshExpiry(bucketId)
      return found.map(({ id }) => id)
    },

    purge(bucketId, ids) {
      const trash = trashOf(bucketId)
      const before = countersOf(trash)
      const removed = itemTable.removeByIds(trash, ids)
      if (before && removed.ids.length > 0)
        release.run(before.bytes - (countersOf(trash)?.bytes ?? 0), bucketId)
      return removed
    },
  }
}
