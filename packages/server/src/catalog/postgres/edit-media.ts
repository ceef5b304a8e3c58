import type { Changes } from '../changes.ts'
import { itemColumns, readItem } from '../item-columns.ts'
import { applyEdit, hasTexts } from '../item-edits.ts'
import type { EditedMedia } from '../records.ts'
import type { Transaction } from './media-rows.ts'

/** Changes the texts of an item. */
export async function editMedia(
  { session }: Transaction,
  { bucketId, id, edit, expected }: Changes['edit-media']['input'],
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
  await session.run(
    `UPDATE media SET filename = $3, alt_text = $4, caption = $5, renamed = coalesce($6, renamed)
    WHERE id = $1 AND bucket_id = $2`,
    ...[id, bucketId, filename, altText, caption, filename === item.filename ? null : 1],
  )
  await session.run('UPDATE buckets SET revision = revision + revision_step() WHERE id = $1', bucketId)
  return edited
}
