import { requireWithinQuota } from '../../core/quota.ts'
import { beginDeletion, endDeletion } from '../buckets.ts'
import { type Change, type ChangeKind, type Changes, isWork, type Output, sharedChanges } from '../changes.ts'
import type { AddedItem, BucketId } from '../records.ts'
import type { EngineChanges, Work } from '../statements.ts'
import { joinRemoved, trashOf } from '../trash.ts'
import { recordEvents, recordItems } from './audit-log.ts'
import { appendItems, removeByIds, removeOldest, type Transaction } from './media-rows.ts'
import { runWork } from './statements.ts'
import { expiredItems, purgeItems, refreshExpiry, removeOrTrash, restoreItems, trashDaysOf } from './trash.ts'

type ChangeFunctions = {
  readonly [K in ChangeKind]: (
    input: Changes[K]['input'],
    transaction: Transaction,
  ) => Promise<Output<K>> | Work<Output<K>>
}

/** Applies a change in a transaction that has locked its bucket. */
export function applyChange<K extends ChangeKind>(
  transaction: Transaction,
  { kind, input }: Change<K>,
): Promise<Output<K>> {
  const made = functions[kind](input, transaction)
  return isWork(made) ? runWork(transaction.session, made, engineOf(transaction)) : made
}

const engineOf = (transaction: Transaction): EngineChanges => {
  const { session, buckets } = transaction
  return {
    record: (events) => recordEvents(session, events),
    requireRoom: buckets.requireRoom,
    requireReserved(bucketId, reserved) {
      const bucket = buckets.get(bucketId)
      requireWithinQuota(bucket, bucket, reserved)
    },
    async reserve(bucketId, { items, bytes }) {
      await session.run(
        `UPDATE buckets SET reserved_items = reserved_items + $1, reserved_bytes = reserved_bytes + $2
        WHERE id = $3`,
        ...[items, bytes, bucketId],
      )
      buckets.add(bucketId, { reservedItems: items, reservedBytes: bytes })
    },
    append: (bucketId, items) => appendItems(transaction, bucketId, items),
  }
}

const functions: ChangeFunctions = {
  ...sharedChanges,

  async 'add-items'({ bucketId, items }, transaction) {
    await addItems(transaction, bucketId, items)
    return undefined
  },

  'remove-items': (input, transaction) =>
    recordItems(
      transaction.session,
      trashDaysOf(transaction, input.bucketId) > 0 ? 'trash' : 'delete',
      input,
      () => removeOrTrash(transaction, input.bucketId, input.ids, input.now),
      ({ ids }) => ids,
    ),

  'restore-items': (input, transaction) =>
    recordItems(
      transaction.session,
      'restore',
      input,
      () => restoreItems(transaction, input.bucketId, input.ids, input.now),
      (ids) => ids,
    ),

  async 'expire-items'({ bucketId, now, limit, ...input }, transaction) {
    const { session } = transaction
    const listed = await expiredItems(session, bucketId, now, limit)
    const trashed = await expiredItems(session, trashOf(bucketId), now, limit - listed.length)
    const removed = await recordItems(
      session,
      'expire',
      { ...input, bucketId, ids: [...listed, ...trashed] },
      async () =>
        joinRemoved(
          await removeByIds(transaction, bucketId, listed),
          await purgeItems(transaction, bucketId, trashed),
        ),
      (result) => result.ids,
    )
    await refreshExpiry(session, bucketId)
    return removed
  },

  'purge-items': (input, transaction) =>
    recordItems(
      transaction.session,
      'purge',
      input,
      () => purgeItems(transaction, input.bucketId, input.ids),
      ({ ids }) => ids,
    ),

  async 'delete-bucket-chunk'(input, transaction) {
    const { session, buckets } = transaction
    const { id, limit } = input
    const engine = engineOf(transaction)
    if (!(await runWork(session, beginDeletion(input), engine)))
      return { items: 0, tombstones: [], isDeleted: true }
    const listed = await removeOldest(transaction, id, limit)
    const trashed = await removeOldest(transaction, trashOf(id), limit)
    const isDeleted = await runWork(session, endDeletion(id), engine)
    if (isDeleted) buckets.remove(id)
    return {
      items: listed.items + trashed.items,
      tombstones: [...listed.tombstones, ...trashed.tombstones],
      isDeleted,
    }
  },
}

async function addItems(
  transaction: Transaction,
  bucketId: BucketId,
  items: readonly AddedItem[],
): Promise<void> {
  const bytes = items.reduce((sum, { size }) => sum + size, 0)
  transaction.buckets.requireRoom(bucketId, { items: items.length, bytes })
  await appendItems(transaction, bucketId, items)
}
