import type { DatabaseSync } from 'node:sqlite'
import { beginDeletion, endDeletion } from '../buckets.ts'
import { type Change, type ChangeKind, type Changes, isWork, type Output, sharedChanges } from '../changes.ts'
import type { AddedMedia, BucketId } from '../records.ts'
import { integer } from '../rows.ts'
import type { Work } from '../statements.ts'
import { trashOf } from '../trash.ts'
import { prepareRecordEvents } from './audit-log.ts'
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
  const oldest = db.prepare('SELECT seq FROM media WHERE bucket_id = ? ORDER BY seq LIMIT ?')

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
  }

  return ({ kind, input }) => {
    const made = functions[kind](input)
    return isWork(made) ? run(made) : made
  }
}
