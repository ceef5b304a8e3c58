import type { MediaId } from '../core/media-id.ts'
import type { BucketId, ContentId, Media, NewMedia } from './records.ts'
import { bytesOrNull, integer, integerOrNull, type Row, text, textOrNull } from './rows.ts'

/** The columns of `media` that `readItem` reads. */
export const itemColumns = 'id, filename, content_type, extension, size, sha256, width, height, created_at'

/** Reads an item from the first nine columns of a row, which are `itemColumns`. */
export const readItem = (row: Row): NewMedia => ({
  id: text(row, 0) as MediaId,
  filename: textOrNull(row, 1),
  contentType: text(row, 2),
  extension: textOrNull(row, 3),
  size: integer(row, 4),
  sha256: bytesOrNull(row, 5),
  width: integerOrNull(row, 6),
  height: integerOrNull(row, 7),
  createdAt: integer(row, 8),
})

/** Reads an item from these columns and three more: bucket, 1 if it is damaged, number of its bytes in the catalog. */
export const readMedia = (row: Row): Media => ({
  ...readItem(row),
  bucketId: integer(row, 9) as BucketId,
  isDamaged: integer(row, 10) === 1,
  contentId: integerOrNull(row, 11) as ContentId | null,
})
