import type { DatabaseSync } from 'node:sqlite'
import { bucketDeleted } from '../../../core/faults.ts'
import type { ItemId } from '../../../core/ids.ts'
import { requireWithinQuota } from '../../../core/quotas.ts'
import { type Actor, service } from '../../../core/token-rules.ts'
import { addedBy, itemEvents } from '../audit-events.ts'
import { beginDeletion, bucketColumns, bucketOf, endDeletion } from '../buckets.ts'
import { countRest, enterCounts, type LeavingRow } from '../expired-items.ts'
import { changeKindOf, recordChanges } from '../item-changes.ts'
import { isLive } from '../items.ts'
import { indexRows, type LabelledRow, labelledRow, unindexRows } from '../labels.ts'
import { type Change, type ChangeKind, type Input, isWork, type Output, sharedChanges } from '../nouns.ts'
import type { AddedItem, Bucket, BucketId, RemovedItems } from '../records.ts'
import { type EngineChanges, integer, integerOrNull, text, textOrNull, type Work } from '../statements.ts'
import { expiryLimit, expiryOf, joinRemoved, trashName, trashOf } from '../trash.ts'
import { prepareRecordEvents } from './audit-log.ts'
import { all, createRun, one } from './database.ts'
import {
  type ItemTable,
  type Names,
  prepareItemTable,
  prepareNames,
  prepareRefreshExpiry,
} from './item-table.ts'
import { prepareRanks, type Ranks } from './ranks.ts'

/** Applies a change within a transaction of the caller. */
export type ApplyChange = <K extends ChangeKind>(change: Change<K>) => Output<K>

type ChangeFunctions = {
  readonly [K in ChangeKind]: (...input: Input<K>) => Output<K> | Work<Output<K>>
}

export function prepareChanges(db: DatabaseSync): ApplyChange {
  const ranks = prepareRanks(db)
  const names = prepareNames(db)
  const itemTable = prepareItemTable(db, ranks, names)
  const quotas = prepareQuotas(db)
  const trash = prepareTrash(db, { itemTable, ranks, names, quotas })
  const oldest = db.prepare('SELECT seq FROM items WHERE bucket_id = ? ORDER BY seq LIMIT ?')

  const record = prepareRecordEvents(db)

  const addItems = (bucketId: BucketId, items: readonly AddedItem[]): void => {
    quotas.requireRoom(bucketId, {
      items: items.length,
      bytes: items.reduce((sum, { size }) => sum + size, 0),
    })
    itemTable.append(bucketId, items)
  }

  const run = createRun(db, {
    record,
    requireRoom: quotas.requireRoom,
    reserve: quotas.reserve,
    requireReserved: quotas.requireReserved,
    append: itemTable.append,
  })

  const functions: ChangeFunctions = {
    ...sharedChanges,

    addItems(bucketId, items, by) {
      addItems(bucketId, addedBy(items, by))
    },

    ...prepareItemChanges(db, itemTable, trash),

    deleteBucketChunk(id, limit, now, by) {
      if (!run(beginDeletion(id, now, by))) return { items: 0, tombstones: [], isDeleted: true }
      const removeSome = (bucketId: BucketId) => {
        const seqs = all(oldest, bucketId, limit).map((row) => integer(row, 0))
        return { items: seqs.length, tombstones: itemTable.remove(bucketId, seqs) }
      }
      const listed = removeSome(id)
      const trashed = removeSome(trashOf(id))
      return {
        items: listed.items + trashed.items,
        tombstones: [...listed.tombstones, ...trashed.tombstones],
        isDeleted: run(endDeletion(id, limit)),
      }
    },
  }

  return ({ kind, input }) => {
    const made = functions[kind](...input)
    return isWork(made) ? run(made) : made
  }
}

type ItemChanges = {
  readonly [K in 'removeItems' | 'restoreItems' | 'purgeItems' | 'expireItems']: (
    ...input: Input<K>
  ) => Output<K>
}

/** Items of which a change is recorded. */
interface ChangedItems {
  readonly bucketId: BucketId
  readonly ids: readonly ItemId[]
  readonly by: Actor | undefined
}

/** The changes that remove and restore items, recorded in the feed, and in the audit log if they have an actor. */
function prepareItemChanges(db: DatabaseSync, itemTable: ItemTable, trash: TrashRows): ItemChanges {
  const file = db.prepare('SELECT filename, size FROM items WHERE id = ?')
  const record = prepareRecordEvents(db)
  const run = createRun(db)
  const expired = db.prepare(`SELECT id FROM items INDEXED BY items_item_expiry
    WHERE bucket_id = ? AND item_expires_at IS NOT NULL AND item_expires_at <= ? ORDER BY item_expires_at LIMIT ?`)
  const refreshExpiry = prepareRefreshExpiry(db)

  function recorded<T>(
    action: keyof typeof changeKindOf,
    { bucketId, ids, by }: ChangedItems,
    change: () => T,
    changed: (result: T) => readonly ItemId[],
  ): T {
    const changeItems = () => {
      const result = change()
      run(recordChanges(bucketId, changeKindOf[action], changed(result)))
      return result
    }
    if (by === undefined) return changeItems()
    const files = new Map(
      ids.flatMap((id) =>
        all(file, id).map((row) => [id, { name: textOrNull(row, 0), size: integer(row, 1) }] as const),
      ),
    )
    const result = changeItems()
    record(itemEvents(action, by, bucketId, changed(result), files))
    return result
  }

  return {
    removeItems: (bucketId, ids, by, now = Date.now()) =>
      recorded(
        trash.hasTrash(bucketId) ? 'trash' : 'delete',
        { bucketId, ids, by },
        () => trash.remove(bucketId, ids, now),
        (removed) => removed.ids,
      ),
    restoreItems: (bucketId, ids, by, now = Date.now()) =>
      recorded(
        'restore',
        { bucketId, ids, by },
        () => trash.restore(bucketId, ids, now),
        (restored) => restored,
      ),
    expireItems(bucketId, now = Date.now(), by) {
      const expiredOf = (id: BucketId, max: number) =>
        all(expired, id, now, max).map((row) => text(row, 0) as ItemId)
      const listed = expiredOf(bucketId, expiryLimit)
      const trashed = expiredOf(trashOf(bucketId), expiryLimit - listed.length)
      const removed = recorded(
        'expire',
        { bucketId, ids: [...listed, ...trashed], by: by && service },
        () => joinRemoved(itemTable.removeByIds(bucketId, listed), trash.purge(bucketId, trashed)),
        (result) => result.ids,
      )
      refreshExpiry(bucketId)
      return { ...removed, ...run(countRest(bucketId, now, removed.ids.length === expiryLimit)) }
    },
    purgeItems: (bucketId, ids, by) =>
      recorded(
        'purge',
        { bucketId, ids, by },
        () => trash.purge(bucketId, ids),
        (removed) => removed.ids,
      ),
  }
}

/** Items of a bucket and of its trash; to be called within a transaction. */
interface TrashRows {
  /** Whether deleted items of the bucket are moved to its trash. */
  hasTrash(bucketId: BucketId): boolean
  /** Removes items, or moves them to the trash of a bucket that has one. */
  remove(bucketId: BucketId, ids: readonly ItemId[], now: number): RemovedItems
  /** Moves the items that have not expired back to the bucket. Returns their ids. Throws Fault `quota-exceeded`. */
  restore(bucketId: BucketId, ids: readonly ItemId[], now: number): ItemId[]
  /** Removes items of the trash permanently. */
  purge(bucketId: BucketId, ids: readonly ItemId[]): RemovedItems
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
  const create = db.prepare(`INSERT INTO buckets (id, name, created_at) VALUES (?, ?, ?)
    ON CONFLICT (id) DO NOTHING`)
  const find = db.prepare(`SELECT seq, size, content_type, created_at, labels, item_expires_at FROM items
    WHERE id = ?1 AND bucket_id = ?2 AND ${isLive('?3')}`)
  const findTrashed =
    db.prepare(`SELECT seq, size, home_seq, content_type, created_at, labels, item_expires_at FROM items
    WHERE id = ? AND bucket_id = ? AND expires_at > ?`)
  const moveOut = db.prepare(`UPDATE items SET bucket_id = ?1, seq = ?2, home_seq = seq, deleted_at = ?3,
    expires_at = min(?4, coalesce(item_expires_at, ?4)) WHERE bucket_id = ?5 AND seq = ?6`)
  const moveBack =
    db.prepare(`UPDATE items SET bucket_id = ?, seq = home_seq, home_seq = NULL, deleted_at = NULL,
    expires_at = NULL, edited = ? WHERE bucket_id = ? AND seq = ?`)
  const change = db.prepare(`UPDATE buckets SET revision = revision + 1, total = total + ?, bytes = bytes + ?,
    next_seq = next_seq + ? WHERE id = ? RETURNING revision`)
  const refreshExpiry = prepareRefreshExpiry(db)
  const run = createRun(db)
  const release = db.prepare('UPDATE buckets SET bytes = bytes - ? WHERE id = ?')

  const countersOf = (bucketId: BucketId) => {
    const row = one(counters, bucketId)
    return row && { total: integer(row, 0), nextSeq: integer(row, 1), bytes: integer(row, 2) }
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

    remove(bucketId, ids, now) {
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
      ranks.remove(bucketId, home.nextSeq, seqs)
      names.clear(bucketId, seqs)
      ranks.add(trash, target.total, target.nextSeq, seqs.length)
      one(change, -seqs.length, 0, 0, bucketId)
      run(unindexRows(bucketId, labelledOf(found)))
      one(change, seqs.length, sum(found.map(({ size }) => size)), seqs.length, trash)
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
      if (found.length === 0 || !home || !source) return []
      // Their bytes are counted already.
      quotas.requireRoom(bucketId, { items: found.length, bytes: 0 })
      const revision = integer(one(change, found.length, 0, 0, bucketId) ?? [], 0)
      for (const { seq } of found) moveBack.run(bucketId, revision, trash, seq)
      const homes = ascending(found.map((item) => item.home))
      ranks.restore(bucketId, home.nextSeq, homes)
      names.refresh(
        bucketId,
        found.map(({ id }) => id),
      )
      ranks.remove(trash, source.nextSeq, ascending(found.map(({ seq }) => seq)))
      one(change, -found.length, -sum(found.map(({ size }) => size)), 0, trash)
      run(indexRows(bucketId, labelledOf(found)))
      moveCounts(bucketId, found)
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

/** The authoritative quota check, within the transaction that adds items. */
type Quotas = Pick<EngineChanges, 'requireRoom' | 'requireReserved' | 'reserve'>

function prepareQuotas(db: DatabaseSync): Quotas {
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
