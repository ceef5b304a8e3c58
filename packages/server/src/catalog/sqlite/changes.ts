import type { DatabaseSync } from 'node:sqlite'
import type { ItemId } from '../../core/media-id.ts'
import { type AuditAction, type Audited, itemEvents } from '../audit-log/events.ts'
import { beginDeletion, endDeletion } from '../buckets.ts'
import { type Change, type ChangeKind, type Changes, isWork, type Output, sharedChanges } from '../changes.ts'
import type { AddedItem, BucketId } from '../records.ts'
import { integer, text, textOrNull } from '../rows.ts'
import type { Work } from '../statements.ts'
import { joinRemoved, trashOf } from '../trash.ts'
import { prepareRecordEvents } from './audit-log.ts'
import { type ItemTable, prepareItemTable, prepareRefreshExpiry } from './media-rows.ts'
import { prepareQuotas } from './quotas.ts'
import { prepareRanks } from './ranks.ts'
import { all } from './rows.ts'
import { createRun } from './statements.ts'
import { prepareTrash, type TrashRows } from './trash.ts'

/** Applies a change within a transaction of the caller. */
export type ApplyChange = <K extends ChangeKind>(change: Change<K>) => Output<K>

type ChangeFunctions = {
  readonly [K in ChangeKind]: (input: Changes[K]['input']) => Output<K> | Work<Output<K>>
}

export function prepareChanges(db: DatabaseSync): ApplyChange {
  const ranks = prepareRanks(db)
  const itemTable = prepareItemTable(db, ranks)
  const quotas = prepareQuotas(db)
  const trash = prepareTrash(db, itemTable, ranks, quotas)
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
        isDeleted: run(endDeletion(id)),
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

/** The changes that remove and restore items, recorded in the audit log if they have an actor. */
function prepareItemChanges(db: DatabaseSync, itemTable: ItemTable, trash: TrashRows): ItemChanges {
  const file = db.prepare('SELECT filename, size FROM items WHERE id = ?')
  const record = prepareRecordEvents(db)
  const expired = db.prepare(`SELECT id FROM items INDEXED BY items_item_expiry
    WHERE bucket_id = ? AND item_expires_at IS NOT NULL AND item_expires_at <= ? ORDER BY item_expires_at LIMIT ?`)
  const refreshExpiry = prepareRefreshExpiry(db)

  function recorded<T>(
    action: AuditAction,
    { bucketId, ids, by }: Audited & { readonly bucketId: BucketId; readonly ids: readonly ItemId[] },
    change: () => T,
    changed: (result: T) => readonly ItemId[],
  ): T {
    if (by === undefined) return change()
    const files = new Map(
      ids.flatMap((id) =>
        all(file, id).map((row) => [id, { name: textOrNull(row, 0), size: integer(row, 1) }] as const),
      ),
    )
    const result = change()
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
