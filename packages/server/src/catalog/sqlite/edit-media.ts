import type { DatabaseSync } from 'node:sqlite'
import { foldName } from '../../core/name-search.ts'
import { editEvent } from '../audit-log/events.ts'
import type { Changes } from '../changes.ts'
import { itemColumnCount, itemColumns, readItem } from '../item-columns.ts'
import { applyEdit, hasTexts } from '../item-edits.ts'
import type { EditedMedia } from '../records.ts'
import { integer } from '../rows.ts'
import { prepareRecordEvents } from './audit-log.ts'
import { one } from './rows.ts'

/** Changes the texts of an item; to be called within a transaction. */
export function prepareEditMedia(db: DatabaseSync): (input: Changes['edit-media']['input']) => EditedMedia {
  const select = db.prepare(`SELECT ${itemColumns}, seq FROM media WHERE id = ? AND bucket_id = ?`)
  const revise = db.prepare('UPDATE buckets SET revision = revision + 1 WHERE id = ? RETURNING revision')
  const update =
    db.prepare(`UPDATE media SET filename = ?, folded_name = ?, alt_text = ?, caption = ?, edited = ?,
    renamed = coalesce(?, renamed) WHERE bucket_id = ? AND seq = ?`)
  const record = prepareRecordEvents(db)

  return ({ bucketId, id, edit, expected, by }) => {
    const row = one(select, id, bucketId)
    if (!row) return 'missing'
    const item = readItem(row)
    if (expected !== null && !hasTexts(item, expected)) return 'changed'
    const edited = applyEdit(item, edit)
    if (edited === item) return item
    const revision = integer(one(revise, bucketId) ?? [], 0)
    const { filename, altText, caption } = edited
    const seq = integer(row, itemColumnCount)
    const isRenamed = filename !== item.filename
    const folded = filename === null ? null : foldName(filename)
    update.run(filename, folded, altText, caption, revision, isRenamed ? 1 : null, bucketId, seq)
    if (by !== undefined) record([editEvent(bucketId, item, edited, by)])
    return edited
  }
}
