import type { DatabaseSync } from 'node:sqlite'
import { bucketDeleted } from '../../core/fault.ts'
import type { ItemId } from '../../core/media-id.ts'
import { foldName } from '../../core/name-search.ts'
import { isPictured } from '../../core/variant.ts'
import { uploadEvents } from '../audit-log/events.ts'
import { newItemColumns, newItemValues } from '../item-columns.ts'
import type { AddedItem, BucketId, ContentId, Preview, RemovedItems } from '../records.ts'
import { integer, integerOrNull, text } from '../rows.ts'
import { sqliteText } from '../statements.ts'
import { expiryRefresh } from '../trash.ts'
import { prepareRecordEvents } from './audit-log.ts'
import { prepareContentRows } from './content-rows.ts'
import type { Ranks } from './ranks.ts'
import { one } from './rows.ts'

/**
 * The only code that writes rows of `items`. Also updates their contents, the bucket's counters, its revision and the ranks, and records
 * additions in the audit log.
 */
export interface ItemTable {
  append(bucketId: BucketId, items: readonly AddedItem[]): void
  /**
   * Removes the items with these sequence numbers, ascending; each must exist. Adds tombstones, and returns their ids: of
   * items whose bytes are in the blob store, and of pictures, which may have variants there.
   */
  remove(bucketId: BucketId, seqs: readonly number[]): ItemId[]
  /** As remove, by ids; ignores ids of other buckets. */
  removeByIds(bucketId: BucketId, ids: readonly ItemId[]): RemovedItems
}

/** Inserts one row with its bytes. Updates no counters. Throws if a check has set its bytes in the blob store aside; those in the catalog it cannot. */
export function prepareInsertItem(
  db: DatabaseSync,
): (bucketId: BucketId, seq: number, added: AddedItem & Partial<Preview>) => void {
  const insert = db.prepare(`INSERT INTO items
    (bucket_id, seq, content_id, thumbhash, duration, folded_name, ${newItemColumns})
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`)
  const isRetired = db.prepare('SELECT EXISTS (SELECT 1 FROM retired WHERE id = ?)')
  const contents = prepareContentRows(db)
  return (bucketId, seq, added) => {
    const { id, filename, bytes, thumbhash = null, duration = null } = added
    if (bytes === null && integer(one(isRetired, id) ?? [], 0) === 1)
      throw new Error('the bytes of this item were set aside by a check')
    const contentId = bytes === null ? null : contents.add(bytes)
    const folded = filename === null ? null : foldName(filename)
    insert.run(bucketId, seq, contentId, thumbhash, duration, folded, ...newItemValues(added))
  }
}

export function prepareItemTable(db: DatabaseSync, ranks: Ranks): ItemTable {
  const bucket = db.prepare('SELECT total, next_seq FROM buckets WHERE id = ?')
  const insert = prepareInsertItem(db)
  const findSeq = db.prepare('SELECT seq FROM items WHERE id = ? AND bucket_id = ?')
  const removeRow = db.prepare(`DELETE FROM items WHERE bucket_id = ? AND seq = ?
    RETURNING size, content_id, id, content_type`)
  const clearIntent = db.prepare('DELETE FROM intents WHERE id = ?')
  const addTombstone = db.prepare('INSERT INTO tombstones (id) VALUES (?)')
  const contents = prepareContentRows(db)
  const record = prepareRecordEvents(db)
  const refreshExpiry = prepareRefreshExpiry(db)
  const grow = db.prepare(`UPDATE buckets
    SET revision = revision + 1, total = total + ?, bytes = bytes + ?, next_seq = next_seq + ? WHERE id = ?`)

  const bucketState = (bucketId: BucketId) => {
    const row = one(bucket, bucketId)
    if (!row) throw bucketDeleted()
    return { total: integer(row, 0), nextSeq: integer(row, 1) }
  }

  const remove: ItemTable['remove'] = (bucketId, seqs) => {
    if (seqs.length === 0) return []
    const { nextSeq } = bucketState(bucketId)
    const tombstones: ItemId[] = []
    let size = 0
    for (const seq of seqs) {
      const row = one(removeRow, bucketId, seq)
      if (!row) throw new RangeError(`bucket ${bucketId} has no item number ${seq}`)
      size += integer(row, 0)
      const contentId = integerOrNull(row, 1)
      if (contentId !== null) contents.remove(contentId as ContentId)
      if (contentId === null || isPictured(text(row, 3))) tombstones.push(text(row, 2) as ItemId)
    }
    for (const id of tombstones) addTombstone.run(id)
    ranks.remove(bucketId, nextSeq, seqs)
    grow.run(-seqs.length, -size, 0, bucketId)
    return tombstones
  }

  return {
    append(bucketId, items) {
      if (items.length === 0) return
      const { total, nextSeq } = bucketState(bucketId)
      let size = 0
      let seq = nextSeq
      for (const added of items) {
        insert(bucketId, seq++, added)
        if (added.bytes === null) clearIntent.run(added.id)
        size += added.size
      }
      ranks.add(bucketId, total, nextSeq, items.length)
      grow.run(items.length, size, items.length, bucketId)
      if (items.some(({ expiresAt }) => expiresAt != null)) refreshExpiry(bucketId)
      record(uploadEvents(bucketId, items))
    },

    remove,

    removeByIds(bucketId, ids) {
      const found = ids.flatMap((id) => {
        const row = one(findSeq, id, bucketId)
        return row ? [{ id, seq: integer(row, 0) }] : []
      })
      const seqs = found.map(({ seq }) => seq).sort((one, other) => one - other)
      return { ids: found.map(({ id }) => id), tombstones: remove(bucketId, seqs) }
    },
  }
}

/** As refreshExpiry of trash.ts. */
export function prepareRefreshExpiry(db: DatabaseSync): (bucketId: BucketId) => void {
  const refresh = db.prepare(sqliteText(expiryRefresh.sqlite))
  return (bucketId) => void refresh.run(bucketId)
}
