import type { DatabaseSync } from 'node:sqlite'
import { bucketDeleted } from '../../../../core/faults.ts'
import { requireWithinQuota } from '../../../../core/quotas.ts'
import { dayOf } from '../../../../core/times.ts'
import { bucketColumns, bucketOf, isNotDeleted } from '../../buckets.ts'
import { enterCounts, type LeavingRow } from '../../items/expired-items.ts'
import { isLive } from '../../items/items.ts'
import { indexRows, type LabelledRow, labelledRow, unindexRows } from '../../items/labels.ts'
import { expiryOf, refreshExpiry, trashName, trashOf } from '../../items/trash.ts'
import { type Output, type Write, type WriteKind, workOf } from '../../nouns.ts'
import type { Bucket, BucketId } from '../../records.ts'
import { type EngineSteps, integer, integerOrNull } from '../../statements.ts'
import { openUsageDay } from '../../usage.ts'
import { type ItemTable, type Names, prepareItemTable, prepareNames, prepareRemoveKey } from './item-table.ts'
import { prepareRecordEvents } from './sqlite-audit-log.ts'
import { all, createRun, one } from './sqlite-database.ts'
import { prepareRanks, type Ranks } from './sqlite-ranks.ts'

/** Applies a write within a transaction of the caller. */
export type ApplyWrite = <K extends WriteKind>(write: Write<K>) => Output<K>

export function prepareWrites(db: DatabaseSync): ApplyWrite {
  const ranks = prepareRanks(db)
  const names = prepareNames(db)
  const itemTable = prepareItemTable(db, ranks, names)
  const quotas = prepareQuotas(db)
  const oldest = db.prepare('SELECT seq FROM items WHERE bucket_id = ? ORDER BY seq LIMIT ? + 0')

  const run = createRun(db, {
    record: prepareRecordEvents(db),
    append: itemTable.append,
    removeByIds: itemTable.removeByIds,
    removeOldest(bucketId, limit) {
      const seqs = all(oldest, bucketId, limit).map((row) => integer(row, 0))
      return { items: seqs.length, tombstones: itemTable.remove(bucketId, seqs) }
    },
    ...quotas,
    ...prepareTrash(db, { itemTable, ranks, names, quotas }),
    forgetBucket() {},
  })
  return (write) => run(workOf(write))
}

/** To be called within a transaction. */
type TrashRows = {
  readonly [Name in 'hasTrash' | 'removeOrTrash' | 'restore' | 'purge']: (
    ...input: Parameters<EngineSteps[Name]>
  ) => Awaited<ReturnType<EngineSteps[Name]>>
}

function prepareTrash(
  db: DatabaseSync,
  {
    itemTable,
    ranks,
    names,
    quotas,
  }: {
    readonly itemTable: ItemTable
    readonly ranks: Ranks
    readonly names: Names
    readonly quotas: Quotas
  },
): TrashRows {
  const days = db.prepare('SELECT trash_days FROM buckets WHERE id = ?')
  const counters = db.prepare('SELECT total, next_seq, bytes FROM buckets WHERE id = ?')
  const openDayOf = db.prepare('SELECT usage_day FROM buckets WHERE id = ?')
  const create = db.prepare(`INSERT INTO buckets (id, name, created_at) VALUES (?, ?, ?)
    ON CONFLICT (id) DO NOTHING`)
  const find = db.prepare(`SELECT seq, size, content_type, created_at, labels, item_expires_at FROM items
    WHERE id = ?1 AND bucket_id = ?2 AND ${isLive('?3')}`)
  const findTrashed =
    db.prepare(`SELECT seq, size, home_seq, content_type, created_at, labels, item_expires_at FROM items
    WHERE id = ? AND bucket_id = ? AND expires_at > ?`)
  const moveOut = db.prepare(`UPDATE items SET bucket_id = ?1, seq = ?2, home_seq = seq, deleted_at = ?3,
    expires_at = min(?4, coalesce(item_expires_at, ?4)) WHERE bucket_id = ?5 AND seq = ?6`)
  const removeKey = prepareRemoveKey(db)
  const moveBack =
    db.prepare(`UPDATE items SET bucket_id = ?, seq = home_seq, home_seq = NULL, deleted_at = NULL,
    expires_at = NULL, edited = ? WHERE bucket_id = ? AND seq = ?`)
  const write = db.prepare(`UPDATE buckets SET revision = revision + 1, total = total + ?, bytes = bytes + ?,
    next_seq = next_seq + ? WHERE id = ?`)
  const leave =
    db.prepare(`UPDATE buckets SET revision = revision + 1, total = total - ?1, removed_items = removed_items + ?1
    WHERE id = ?2`)
  const comeBack =
    db.prepare(`UPDATE buckets SET revision = revision + 1, total = total + ?1, added_items = added_items + ?1
    WHERE id = ?2 RETURNING revision`)
  const run = createRun(db)
  const release = db.prepare(
    'UPDATE buckets SET bytes = bytes - ?1, removed_bytes = removed_bytes + ?1 WHERE id = ?2',
  )

  const countersOf = (bucketId: BucketId) => {
    const row = one(counters, bucketId)
    return row && { total: integer(row, 0), nextSeq: integer(row, 1), bytes: integer(row, 2) }
  }
  /** Opens the day of this moment (catalog/usage.ts). */
  const openDay = (bucketId: BucketId) => {
    const day = dayOf(Date.now())
    const row = one(openDayOf, bucketId)
    if (row && integer(row, 0) !== day) run(openUsageDay(bucketId, day))
  }
  const ascending = (seqs: readonly number[]) => seqs.toSorted((one, other) => one - other)
  const labelledOf = (found: readonly { readonly labelled: readonly LabelledRow[] }[]) =>
    found.flatMap(({ labelled }) => labelled)
  const sum = (numbers: readonly number[]) => numbers.reduce((all, number) => all + number, 0)

  /** To be called after live items were moved between a bucket and its trash. */
  const moveCounts = (bucketId: BucketId, moved: readonly Pick<LeavingRow, 'expiry'>[]) => {
    const expiries = moved.map(({ expiry }) => expiry)
    for (const id of [bucketId, trashOf(bucketId)]) run(enterCounts(id, expiries))
  }

  const daysOf = (bucketId: BucketId) => integer(one(days, bucketId) ?? [0], 0)

  return {
    hasTrash: (bucketId) => daysOf(bucketId) > 0,

    removeOrTrash(bucketId, ids, now) {
      const trashDays = daysOf(bucketId)
      if (trashDays === 0) return itemTable.removeByIds(bucketId, ids, now)
      const found = ids.flatMap((id) =>
        all(find, id, bucketId, now).map((row) => ({
          ...{ id, seq: integer(row, 0), size: integer(row, 1), expiry: integerOrNull(row, 5) },
          labelled: labelledRow(integer(row, 0), row, 2),
        })),
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
      for (const { id, seq } of found) removeKey(bucketId, id, seq)
      ranks.remove(bucketId, home.nextSeq, seqs)
      names.clear(bucketId, seqs)
      ranks.add(trash, target.total, target.nextSeq, seqs.length)
      openDay(bucketId)
      leave.run(seqs.length, bucketId)
      run(unindexRows(bucketId, labelledOf(found)))
      write.run(seqs.length, sum(found.map(({ size }) => size)), seqs.length, trash)
      moveCounts(bucketId, found)
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
          expiry: integerOrNull(row, 6),
          labelled: labelledRow(integer(row, 2), row, 3),
        })),
      )
      const [home, source] = [countersOf(bucketId), countersOf(trash)]
      if (found.length === 0 || !home || !source) return { ids: [] }
      // Their bytes are counted already.
      quotas.requireRoom(bucketId, { items: found.length, bytes: 0 })
      openDay(bucketId)
      const revision = integer(one(comeBack, found.length, bucketId) ?? [], 0)
      for (const { seq } of found) moveBack.run(bucketId, revision, trash, seq)
      const homes = ascending(found.map((item) => item.home))
      ranks.restore(bucketId, home.nextSeq, homes)
      names.refresh(
        bucketId,
        found.map(({ id }) => id),
      )
      ranks.remove(trash, source.nextSeq, ascending(found.map(({ seq }) => seq)))
      write.run(-found.length, -sum(found.map(({ size }) => size)), 0, trash)
      run(indexRows(bucketId, labelledOf(found)))
      moveCounts(bucketId, found)
      run(refreshExpiry(bucketId))
      return { ids: found.map(({ id }) => id) }
    },

    purge(bucketId, ids) {
      const trash = trashOf(bucketId)
      const before = countersOf(trash)
      const removed = itemTable.removeByIds(trash, ids)
      if (before && removed.ids.length > 0) {
        openDay(bucketId)
        release.run(before.bytes - (countersOf(trash)?.bytes ?? 0), bucketId)
      }
      return removed
    },
  }
}

/** The authoritative quota check, within the transaction that adds items. */
type Quotas = Pick<EngineSteps, 'requireRoom' | 'requireReserved' | 'reserve'>

function prepareQuotas(db: DatabaseSync): Quotas {
  const select = db.prepare(`SELECT ${bucketColumns} FROM buckets WHERE id = ? AND ${isNotDeleted}`)
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
