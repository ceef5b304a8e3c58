import type { DatabaseSync } from 'node:sqlite'
import { beginDeletion, endDeletion } from '../buckets.ts'
import { type Change, type ChangeKind, type Changes, isWork, type Output, sharedChanges } from '../changes.ts'
import type { AddedMedia, BucketId } from '../records.ts'
import { integer } from '../rows.ts'
import type { Work } from '../statements.ts'
import { trashOf } from '../trash.ts'
import { prepareRecordEvents } from './audit-log.ts'
import { prepareEditMedia } from './edit-media.ts'
import { prepareItemChanges } from './item-changes.ts'
import { prepareMediaRows } from './media-rows.ts'
import { prepareQuotas } from './quotas.ts'
import { prepareRanks } from './ranks.ts'
import { all } from './rows.ts'
import { createRun } from './statements.ts'
import { prepareTrash } from './trash.ts'

/** Applies a change within a transaction of the caller. */
export type ApplyChange = <K extends ChangeKind>(change: Change<K>) => Output<K>

type ChangeFunctions = {
  readonly [K in ChangeKind]: (input: Changes[K]['input']) => Output<K> | Work<Output<K>>
}

export function prepareChanges(db: DatabaseSync): ApplyChange {
  const ranks = prepareRanks(db)
  const media = prepareMediaRows(db, ranks)
  const quotas = prepareQuotas(db)
  const trash = prepareTrash(db, media, ranks, quotas)
  const setPreview = db.prepare(`UPDATE media SET thumbhash = ?1, duration = coalesce(duration, ?2),
    width = iif(?7, ?3, coalesce(width, ?3)), height = iif(?7, ?4, coalesce(height, ?4)),
    edited = (SELECT revision + 1 FROM buckets WHERE buckets.id = bucket_id)
    WHERE id = ?5 AND bucket_id = ?6 AND (thumbhash IS NULL OR ?7)`)
  const incrementRevision = db.prepare('UPDATE buckets SET revision = revision + 1 WHERE id = ?')
  const oldest = db.prepare('SELECT seq FROM media WHERE bucket_id = ? ORDER BY seq LIMIT ?')

  const recordCheck = db.prepare(
    "INSERT OR REPLACE INTO meta (key, value) VALUES ('write_check', CAST(? AS TEXT))",
  )

  const record = prepareRecordEvents(db)

  const addMedia = (bucketId: BucketId, items: readonly AddedMedia[]): void => {
    quotas.requireRoom(bucketId, {
      items: items.length,
      bytes: items.reduce((sum, { size }) => sum + size, 0),
    })
    media.append(bucketId, items)
  }

  const run = createRun(db, {
    record,
    requireRoom: quotas.requireRoom,
    reserve: quotas.reserve,
    requireReserved: quotas.requireReserved,
    append: media.append,
  })

  const functions: ChangeFunctions = {
    ...sharedChanges,

    'add-media'({ bucketId, items }) {
      addMedia(bucketId, items)
    },

    ...prepareItemChanges(db, media, trash),

    'set-preview'({ bucketId, id, preview: { thumbhash, duration, width, height, isCorrection } }) {
      const replaces = isCorrection ? 1 : 0
      const { changes } = setPreview.run(thumbhash, duration, width, height, id, bucketId, replaces)
      if (Number(changes) > 0) incrementRevision.run(bucketId)
      return undefined
    },

    'edit-media': prepareEditMedia(db),

    'delete-bucket-chunk'(input) {
      const { id, limit } = input
      if (!run(beginDeletion(input))) return { items: 0, tombstones: [], isDeleted: true }
      const removeSome = (bucketId: BucketId) => {
        const seqs = all(oldest, bucketId, limit).map((row) => integer(row, 0))
        return { items: seqs.length, tombstones: media.remove(bucketId, seqs) }
      }
      const listed = removeSome(id)
      const trashed = removeSome(trashOf(id))
      return {
        items: listed.items + trashed.items,
        tombstones: [...listed.tombstones, ...trashed.tombstones],
        isDeleted: run(endDeletion(id)),
      }
    },

    settle() {},

    check() {
      recordCheck.run(Date.now())
    },
  }

  return ({ kind, input }) => {
    const made = functions[kind](input)
    return isWork(made) ? run(made) : made
  }
}
