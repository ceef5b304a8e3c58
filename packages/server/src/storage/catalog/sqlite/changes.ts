import type { DatabaseSync } from 'node:sqlite'
import { bucketDeleted } from '../../../core/faults.ts'
import type { ItemId } from '../../../core/ids.ts'
import { nameKey, nameLine, nameLines, nameSlot, namesPerRow } from '../../../core/names.ts'
import { requireWithinQuota } from '../../../core/quotas.ts'
import { isPictured } from '../../../core/variants.ts'
import { type Audited, itemEvents, uploadEvents } from '../audit-events.ts'
import { beginDeletion, bucketColumns, bucketOf, endDeletion, revisionStep } from '../buckets.ts'
import { type Change, type ChangeKind, type Changes, isWork, type Output, sharedChanges } from '../catalog.ts'
import { changeKindOf, changeKinds, recordChanges } from '../item-changes.ts'
import { refreshNames } from '../item-names.ts'
import { newItemColumns, newItemValues } from '../items.ts'
import { indexRows, type LabelledRow, labelledRow, unindexRows } from '../labels.ts'
import type { AddedItem, Bucket, BucketId, Preview, RemovedItems } from '../records.ts'
import {
  type EngineChanges,
  integer,
  integerOrNull,
  sqliteText,
  text,
  textOrNull,
  type Work,
} from '../statements.ts'
import { expiryOf, expiryRefresh, isTrash, joinRemoved, trashName, trashOf } from '../trash.ts'
import { prepareRecordEvents } from './audit-log.ts'
import { all, createRun, one } from './database.ts'
import { prepareRanks, type Ranks } from './ranks.ts'

/** Applies a change within a transaction of the caller. */
export type ApplyChange = <K extends ChangeKind>(change: Change<K>) => Output<K>

type ChangeFunctions = {
  readonly [K in ChangeKind]: (input: Changes[K]['input']) => Output<K> | Work<Output<K>>
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

    'add-items'({ bucketId, items }) {
      addItems(bucketId, items)
    },

    ...prepareItemChanges(db, itemTable, trash),

    'delete-bucket-chunk'(input) {
      const { id, limit } = input
      if (!run(beginDeletion(input))) return { items: 0, tombstones: [], isDeleted: true }
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
    const made = functions[kind](input)
    return isWork(made) ? run(made) : made
  }
}

type ItemChanges = {
  readonly [K in 'remove-items' | 'restore-items' | 'purge-items' | 'expire-items']: (
    input: Changes[K]['input'],
  ) => Output<K>
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
    { bucketId, ids, by }: Audited & { readonly bucketId: BucketId; readonly ids: readonly ItemId[] },
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
    'remove-items': (input) =>
      recorded(
        trash.hasTrash(input.bucketId) ? 'trash' : 'delete',
        input,
        () => trash.remove(input.bucketId, input.ids, input.now),
        ({ ids }) => ids,
      ),
    'restore-items': (input) =>
      recorded(
        'restore',
        input,
        () => trash.restore(input.bucketId, input.ids, input.now),
        (ids) => ids,
      ),
    'expire-items'({ bucketId, now, limit, ...input }) {
      const expiredOf = (id: BucketId, max: number) =>
        all(expired, id, now, max).map((row) => text(row, 0) as ItemId)
      const listed = expiredOf(bucketId, limit)
      const trashed = expiredOf(trashOf(bucketId), limit - listed.length)
      const removed = recorded(
        'expire',
        { ...input, bucketId, ids: [...listed, ...trashed] },
        () => joinRemoved(itemTable.removeByIds(bucketId, listed), trash.purge(bucketId, trashed)),
        (result) => result.ids,
      )
      refreshExpiry(bucketId)
      return removed
    },
    'purge-items': (input) =>
      recorded(
        'purge',
        input,
        () => trash.purge(input.bucketId, input.ids),
        ({ ids }) => ids,
      ),
  }
}

/** Writes the rows of catalog/item-names.ts, which the trash does not have. */
type Names = ReturnType<typeof prepareNames>

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
  /** As remove, by ids; ignores ids of other buckets. */
  removeByIds(bucketId: BucketId, ids: readonly ItemId[]): RemovedItems
}

/**
 * Inserts one row with its bytes. Updates no counters. Throws if a check has set its bytes in the blob store aside, or if its id has a tombstone, by
 * which they may be removed at any time. Neither concerns bytes in the catalog.
 */
export function prepareInsertItem(
  db: DatabaseSync,
): (bucketId: BucketId, seq: number, added: AddedItem & Partial<Preview>) => void {
  const insert = db.prepare(`INSERT INTO items
    (bucket_id, seq, content_id, thumbhash, duration, name_key, ${newItemColumns})
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`)
  const isRefused = db.prepare(
    'SELECT EXISTS (SELECT 1 FROM retired WHERE id = ?1) OR EXISTS (SELECT 1 FROM tombstones WHERE id = ?1)',
  )
  const insertContent = db.prepare('INSERT INTO contents (bytes) VALUES (?)')
  return (bucketId, seq, added) => {
    const { id, bytes, thumbhash = null, duration = null } = added
    if (bytes === null && integer(one(isRefused, id) ?? [], 0) === 1)
      throw new Error('the bytes of this item were set aside by a check, or are being deleted')
    // RETURNING costs a quarter more.
    const contentId = bytes === null ? null : Number(insertContent.run(bytes).lastInsertRowid)
    const key = nameKey(nameLine(added.filename))
    insert.run(bucketId, seq, contentId, thumbhash, duration, key, ...newItemValues(added))
  }
}

export function prepareItemTable(
  db: DatabaseSync,
  ranks: Ranks,
  names: Pick<Names, 'append' | 'clear'>,
): ItemTable {
  const bucket = db.prepare('SELECT total, next_seq, revision FROM buckets WHERE id = ?')
  const addChange = db.prepare(
    `INSERT INTO changes (bucket_id, number, kind, item_id, time) VALUES (?, ?, ${changeKinds.added}, ?, ?)`,
  )
  const insert = prepareInsertItem(db)
  const findSeq = db.prepare('SELECT seq FROM items WHERE id = ? AND bucket_id = ?')
  const removeRow = db.prepare(`DELETE FROM items WHERE bucket_id = ? AND seq = ?
    RETURNING size, content_id, id, content_type, created_at, labels`)
  const clearIntent = db.prepare('DELETE FROM intents WHERE id = ?')
  const addTombstone = db.prepare('INSERT INTO tombstones (id) VALUES (?) ON CONFLICT DO NOTHING')
  const removeContent = db.prepare('DELETE FROM contents WHERE id = ?')
  const record = prepareRecordEvents(db)
  const refreshExpiry = prepareRefreshExpiry(db)
  const run = createRun(db)
  const grow = db.prepare(`UPDATE buckets
    SET revision = revision + ?, total = total + ?, bytes = bytes + ?, next_seq = next_seq + ? WHERE id = ?`)

  const bucketState = (bucketId: BucketId) => {
    const row = one(bucket, bucketId)
    if (!row) throw bucketDeleted()
    return { total: integer(row, 0), nextSeq: integer(row, 1), revision: integer(row, 2) }
  }

  const remove: ItemTable['remove'] = (bucketId, seqs) => {
    if (seqs.length === 0) return []
    const { nextSeq } = bucketState(bucketId)
    const tombstones: ItemId[] = []
    const labelled: LabelledRow[] = []
    let size = 0
    for (const seq of seqs) {
      const row = one(removeRow, bucketId, seq)
      if (!row) throw new RangeError(`bucket ${bucketId} has no item number ${seq}`)
      size += integer(row, 0)
      const contentId = integerOrNull(row, 1)
      if (contentId !== null) removeContent.run(contentId)
      if (contentId === null || isPictured(text(row, 3))) tombstones.push(text(row, 2) as ItemId)
      labelled.push(...labelledRow(seq, row, 3))
    }
    for (const id of tombstones) addTombstone.run(id)
    if (labelled.length > 0 && !isTrash(bucketId)) run(unindexRows(bucketId, labelled))
    ranks.remove(bucketId, nextSeq, seqs)
    names.clear(bucketId, seqs)
    grow.run(1, -seqs.length, -size, 0, bucketId)
    return tombstones
  }

  return {
    append(bucketId, items) {
      if (items.length === 0) return
      const { total, nextSeq, revision } = bucketState(bucketId)
      const now = Date.now()
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
      grow.run(number - revision, items.length, size, items.length, bucketId)
      if (items.some(({ expiresAt }) => expiresAt != null)) refreshExpiry(bucketId)
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
function prepareRefreshExpiry(db: DatabaseSync): (bucketId: BucketId) => void {
  const refresh = db.prepare(sqliteText(expiryRefresh.sqlite))
  return (bucketId) => void refresh.run(bucketId)
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
  const find = db.prepare(`SELECT seq, size, content_type, created_at, labels FROM items
    WHERE id = ? AND bucket_id = ?`)
  const findTrashed = db.prepare(`SELECT seq, size, home_seq, content_type, created_at, labels FROM items
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

  const daysOf = (bucketId: BucketId) => integer(one(days, bucketId) ?? [0], 0)

  return {
    hasTrash: (bucketId) => daysOf(bucketId) > 0,

    remove(bucketId, ids, now) {
      const trashDays = daysOf(bucketId)
      if (trashDays === 0) return itemTable.removeByIds(bucketId, ids)
      const found = ids.flatMap((id) =>
        all(find, id, bucketId).map((row) => ({
          ...{ id, seq: integer(row, 0), size: integer(row, 1) },
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
