import type { DatabaseSync } from 'node:sqlite'
import { nameKey } from '@mediabucket/client/rules'
import { bucketDeleted } from '../../../../core/faults.ts'
import type { ItemId } from '../../../../core/ids.ts'
import { nameLine, nameLines, nameSlot, namesPerRow } from '../../../../core/names.ts'
import { dayOf } from '../../../../core/times.ts'
import { isPictured } from '../../../../core/variants.ts'
import { uploadEvents } from '../../audit/audit-events.ts'
import { revisionStep } from '../../buckets.ts'
import { enterCounts, type LeavingRow, leaveCounts } from '../../items/expired-items.ts'
import { itemChangeKinds } from '../../items/item-changes.ts'
import { columnOf, type laterMembers, newItemMembers } from '../../items/item-columns.ts'
import { refreshNames } from '../../items/item-names.ts'
import { newItemValues, storedValue } from '../../items/item-rows.ts'
import { isLive } from '../../items/items.ts'
import { indexRows, type LabelledRow, labelledRow, unindexRows } from '../../items/labels.ts'
import { isTrash, refreshExpiry } from '../../items/trash.ts'
import { keyedBlock } from '../../objects/keyed-counts.ts'
import type { AddedItem, BucketId, ItemDetails, RemovedItems } from '../../records.ts'
import { integer, integerOrNull, text } from '../../statements.ts'
import { openUsageDay } from '../../usage.ts'
import { prepareRecordEvents } from './sqlite-audit-log.ts'
import { createRun, one } from './sqlite-database.ts'
import type { Ranks } from './sqlite-ranks.ts'

/** Writes the rows of items/item-names.ts, which the trash does not have. */
export type Names = ReturnType<typeof prepareNames>

export function prepareNames(db: DatabaseSync) {
  const append = db.prepare(`INSERT INTO item_names (bucket_id, slot, names) VALUES (?1, ?2, ?3 || ?4)
    ON CONFLICT DO UPDATE SET names = names || char(10) || ?4`)
  const clear = db.prepare(`DELETE FROM item_names WHERE bucket_id = ?1 AND slot = ?2 AND NOT EXISTS
    (SELECT 1 FROM items WHERE bucket_id = ?1 AND seq >= ?2 * ${namesPerRow} AND seq < (?2 + 1) * ${namesPerRow})`)
  const run = createRun(db)
  return {
    /** Appends the names of items that are numbered from `firstSeq`. */
    append(bucketId: BucketId, firstSeq: number, items: readonly Pick<AddedItem, 'filename'>[]): void {
      const filenames = items.map(({ filename }) => filename)
      for (const { slot, padding, lines } of nameLines(firstSeq, filenames))
        append.run(bucketId, slot, padding, lines)
    },
    /** To be called after items with these numbers were removed. */
    clear(bucketId: BucketId, seqs: readonly number[]): void {
      if (isTrash(bucketId)) return
      for (const slot of new Set(seqs.map(nameSlot))) clear.run(bucketId, slot)
    },
    /** To be called after these items were restored. */
    refresh: (bucketId: BucketId, ids: readonly ItemId[]): void => run(refreshNames(bucketId, ids)),
  }
}

/**
 * The only code that writes rows of `items`. Also updates their contents, the bucket's counters, its revision and the ranks, and records
 * additions in the feed and the audit log.
 */
export interface ItemTable {
  append(bucketId: BucketId, items: readonly AddedItem[]): void
  /**
   * Removes the items with these sequence numbers, ascending; each must exist. Adds tombstones, and returns their ids: of
   * items whose bytes are in the blob store, and of pictures, which may have variants there.
   */
  remove(bucketId: BucketId, seqs: readonly number[]): ItemId[]
  /** As remove, by ids; ignores ids of other buckets, and of items that have expired at `now`, if it is given. */
  removeByIds(bucketId: BucketId, ids: readonly ItemId[], now?: number): RemovedItems
}

/**
 * Inserts one row with its bytes and its `later` members. Updates no counters. Throws if a check has set its bytes in the blob store aside, or if its id
 * has a tombstone, by which they may be removed at any time. Neither concerns bytes in the catalog.
 */
export function prepareInsertItem(
  db: DatabaseSync,
  later: typeof laterMembers = [],
): (bucketId: BucketId, seq: number, added: AddedItem & Partial<ItemDetails>) => void {
  const columns = [...(['bucketId', 'seq', 'contentId', 'nameKey'] as const), ...newItemMembers, ...later]
  const insert = db.prepare(
    `INSERT INTO items (${columns.map(columnOf).join()}) VALUES (${columns.map(() => '?').join()})`,
  )
  const isRefused = db.prepare(
    'SELECT EXISTS (SELECT 1 FROM retired WHERE id = ?1) OR EXISTS (SELECT 1 FROM tombstones WHERE id = ?1)',
  )
  const insertContent = db.prepare('INSERT INTO contents (bytes) VALUES (?)')
  return (bucketId, seq, added) => {
    const { id, bytes } = added
    if (bytes === null && integer(one(isRefused, id) ?? [], 0) === 1)
      throw new Error('the bytes of this item were set aside by a check, or are being deleted')
    // Cheaper than RETURNING.
    const contentId = bytes === null ? null : Number(insertContent.run(bytes).lastInsertRowid)
    const key = nameKey(nameLine(added.filename))
    const values = newItemValues(added)
    for (const member of later) values.push(storedValue(added, member))
    // With two lists, a call takes longer.
    insert.run(bucketId, seq, contentId, key, ...values)
  }
}

/** Returns a function that removes the key of an item, if it has one, before the item leaves its bucket. */
export function prepareRemoveKey(db: DatabaseSync): (bucketId: BucketId, id: string, seq: number) => void {
  const remove = db.prepare('DELETE FROM object_keys WHERE item_id = ?')
  const uncount = db.prepare('UPDATE keyed_counts SET items = items - 1 WHERE bucket_id = ? AND slot = ?')
  return (bucketId, id, seq) => {
    if (remove.run(id).changes === 1) uncount.run(bucketId, Math.floor(seq / keyedBlock))
  }
}

export function prepareItemTable(
  db: DatabaseSync,
  ranks: Ranks,
  names: Pick<Names, 'append' | 'clear'>,
): ItemTable {
  const bucket = db.prepare('SELECT total, next_seq, revision, usage_day FROM buckets WHERE id = ?')
  const addChange = db.prepare(
    `INSERT INTO changes (bucket_id, number, kind, item_id, time) VALUES (?, ?, ${itemChangeKinds.added}, ?, ?)`,
  )
  const insert = prepareInsertItem(db)
  const findSeq = db.prepare(`SELECT seq FROM items WHERE id = ?1 AND bucket_id = ?2 AND ${isLive('?3')}`)
  const removeRow = db.prepare(`DELETE FROM items WHERE bucket_id = ? AND seq = ?
    RETURNING size, content_id, id, content_type, created_at, labels, item_expires_at`)
  const clearIntent = db.prepare('DELETE FROM intents WHERE id = ?')
  const addTombstone = db.prepare('INSERT INTO tombstones (id) VALUES (?) ON CONFLICT DO NOTHING')
  const removeContent = db.prepare('DELETE FROM contents WHERE id = ?')
  const removeKey = prepareRemoveKey(db)
  const record = prepareRecordEvents(db)
  const run = createRun(db)
  const grow = db.prepare(`UPDATE buckets
    SET revision = revision + ?1, total = total + ?2, bytes = bytes + ?3, next_seq = next_seq + ?2, added_items = added_items + ?2,
      added_bytes = added_bytes + ?3 WHERE id = ?4`)
  const shrink =
    db.prepare(`UPDATE buckets SET revision = revision + 1, total = total - ?1, bytes = bytes - ?2,
    removed_items = CASE WHEN id > 0 THEN removed_items + ?1 ELSE 0 END,
    removed_bytes = CASE WHEN id > 0 THEN removed_bytes + ?2 ELSE 0 END WHERE id = ?3`)

  /** Opens the day of `now` (catalog/usage.ts). */
  const openBucket = (bucketId: BucketId, now: number) => {
    const row = one(bucket, bucketId)
    if (!row) throw bucketDeleted()
    const day = dayOf(now)
    if (integer(row, 3) !== day && !isTrash(bucketId)) run(openUsageDay(bucketId, day))
    return { total: integer(row, 0), nextSeq: integer(row, 1), revision: integer(row, 2) }
  }

  const remove: ItemTable['remove'] = (bucketId, seqs) => {
    if (seqs.length === 0) return []
    const { nextSeq } = openBucket(bucketId, Date.now())
    const tombstones: ItemId[] = []
    const labelled: LabelledRow[] = []
    const leaving: LeavingRow[] = []
    let size = 0
    for (const seq of seqs) {
      const row = one(removeRow, bucketId, seq)
      if (!row) throw new RangeError(`bucket ${bucketId} has no item number ${seq}`)
      size += integer(row, 0)
      const contentId = integerOrNull(row, 1)
      if (contentId !== null) removeContent.run(contentId)
      if (contentId === null || isPictured(text(row, 3))) tombstones.push(text(row, 2) as ItemId)
      if (!isTrash(bucketId)) removeKey(bucketId, text(row, 2), seq)
      labelled.push(...labelledRow(seq, row, 3))
      leaving.push({ seq, size: integer(row, 0), expiry: integerOrNull(row, 6) })
    }
    for (const id of tombstones) addTombstone.run(id)
    if (labelled.length > 0 && !isTrash(bucketId)) run(unindexRows(bucketId, labelled))
    run(leaveCounts(bucketId, leaving))
    ranks.remove(bucketId, nextSeq, seqs)
    names.clear(bucketId, seqs)
    shrink.run(seqs.length, size, bucketId)
    return tombstones
  }

  return {
    append(bucketId, items) {
      if (items.length === 0) return
      const now = Date.now()
      const { total, nextSeq, revision } = openBucket(bucketId, now)
      let size = 0
      let seq = nextSeq
      let number = revision + revisionStep() - 1
      for (const added of items) {
        insert(bucketId, seq++, added)
        if (added.bytes === null) clearIntent.run(added.id)
        addChange.run(bucketId, ++number, added.id, now)
        size += added.size
      }
      ranks.add(bucketId, total, nextSeq, items.length)
      names.append(bucketId, nextSeq, items)
      grow.run(number - revision, items.length, size, bucketId)
      if (items.some(({ expiresAt }) => expiresAt != null)) {
        const expiries = items.map(({ expiresAt }) => expiresAt)
        run(enterCounts(bucketId, expiries))
        run(refreshExpiry(bucketId))
      }
      if (items.some(({ labels }) => labels != null))
        run(
          indexRows(
            bucketId,
            items.map((item, index) => ({ ...item, seq: nextSeq + index })),
          ),
        )
      if (items.some(({ by }) => by !== undefined)) record(uploadEvents(bucketId, items))
    },

    remove,

    removeByIds(bucketId, ids, now = Number.MIN_SAFE_INTEGER) {
      const found = ids.flatMap((id) => {
        const row = one(findSeq, id, bucketId, now)
        return row ? [{ id, seq: integer(row, 0) }] : []
      })
      const seqs = found.map(({ seq }) => seq).sort((one, other) => one - other)
      return { ids: found.map(({ id }) => id), tombstones: remove(bucketId, seqs) }
    },
  }
}
