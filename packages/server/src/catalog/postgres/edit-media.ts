import { foldName } from '../../core/name-search.ts'
import { editEvent } from '../audit-log/events.ts'
import type { Changes } from '../changes.ts'
import { itemColumns, readItem } from '../item-columns.ts'
import { applyEdit, hasTexts } from '../item-edits.ts'
import type { EditedMedia } from '../records.ts'
import { recordEvents } from './audit-log.ts'
import type { Transaction } from './media-rows.ts'

/** Changes the texts of an item. */
export async function editMedia(
  { bucketId, id, edit, expected, by }: Changes['edit-media']['input'],
  { session }: Transaction,
): Promise<EditedMedia> {
  const [row] = await session.run(
    `SELECT ${itemColumns} FROM media WHERE id = $1 AND bucket_id = $2`,
    id,
    bucketId,
  )
  if (!row) return 'missing'
  const item = readItem(row)
  if (expected !== null && !hasTexts(item, expected)) return 'changed'
  const edited = applyEdit(item, edit)
  if (edited === item) return item
  const { filename, altText, caption } = edited
  const isRenamed = filename !== item.filename
  await session.run(
    `UPDATE media SET filename = $3, alt_text = $4, caption = $5, renamed = coalesce($6, renamed), folded_name = $7
    WHERE id = $1 AND bucket_id = $2`,
    ...[id, bucketId, filename, altText, caption, isRenamed ? 1 : null],
    filename === null ? null : foldName(filename),
  )
  await session.run('UPDATE buckets SET revision = revision + revision_step() WHERE id = $1', bucketId)
  if (by !== undefined) await recordEvents(session, [editEvent(bucketId, item, edited, by)])
  return edited
}
