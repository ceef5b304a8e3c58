import type { DatabaseSync } from 'node:sqlite'
import type { MediaId } from '../../core/media-id.ts'
import type { Audited } from '../audit-log/events.ts'
import { type AuditAction, itemEvents } from '../audit-log/events.ts'
import type { Changes, Output } from '../changes.ts'
import type { BucketId } from '../records.ts'
import { integer, text, textOrNull } from '../rows.ts'
import { joinRemoved, trashOf } from '../trash.ts'
import { prepareRecordEvents } from './audit-log.ts'
import { prepareRefreshExpiry } from './item-expiry.ts'
import type { MediaRows } from './media-rows.ts'
import { all } from './rows.ts'
import type { TrashRows } from './trash.ts'

type ItemChanges = {
  readonly [K in 'remove-media' | 'restore-media' | 'purge-media' | 'expire-items']: (
    input: Changes[K]['input'],
  ) => Output<K>
}

/** The changes that remove and restore items, recorded in the audit log if they have an actor. */
export function prepareItemChanges(db: DatabaseSync, media: MediaRows, trash: TrashRows): ItemChanges {
  const file = db.prepare('SELECT filename, size FROM media WHERE id = ?')
  const record = prepareRecordEvents(db)
  const expired = db.prepare(`SELECT id FROM media INDEXED BY media_item_expiry
    WHERE bucket_id = ? AND item_expires_at IS NOT NULL AND item_expires_at <= ? ORDER BY item_expires_at LIMIT ?`)
  const refreshExpiry = prepareRefreshExpiry(db)

  function recorded<T>(
    action: AuditAction,
    { bucketId, ids, by }: Audited & { readonly bucketId: BucketId; readonly ids: readonly MediaId[] },
    change: () => T,
    changed: (result: T) => readonly MediaId[],
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
    'remove-media': (input) =>
      recorded(
        trash.hasTrash(input.bucketId) ? 'trash' : 'delete',
        input,
        () => trash.remove(input.bucketId, input.ids, input.now),
        ({ ids }) => ids,
      ),
    'restore-media': (input) =>
      recorded(
        'restore',
        input,
        () => trash.restore(input.bucketId, input.ids, input.now),
        (ids) => ids,
      ),
    'expire-items'({ bucketId, now, limit, ...input }) {
      const expiredOf = (id: BucketId, max: number) =>
        all(expired, id, now, max).map((row) => text(row, 0) as MediaId)
      const listed = expiredOf(bucketId, limit)
      const trashed = expiredOf(trashOf(bucketId), limit - listed.length)
      const removed = recorded(
        'expire',
        { ...input, bucketId, ids: [...listed, ...trashed] },
        () => joinRemoved(media.removeByIds(bucketId, listed), trash.purge(bucketId, trashed)),
        (result) => result.ids,
      )
      refreshExpiry(bucketId)
      return removed
    },
    'purge-media': (input) =>
      recorded(
        'purge',
        input,
        () => trash.purge(input.bucketId, input.ids),
        ({ ids }) => ids,
      ),
  }
}
