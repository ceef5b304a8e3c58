import type { MediaId } from '../core/media-id.ts'
import type { UploadId } from '../core/upload-id.ts'
import type { BucketId } from './records.ts'
import { integer, integerOrNull, type Row, text, textOrNull } from './rows.ts'
import type { Upload } from './upload-records.ts'

export const uploadColumns =
  'id, bucket_id, length, received, metadata, filename, declared_type, media_id, finished, expires_at'

// These columns contain only ids of these kinds.
export const uploadOf = (row: Row): Upload => ({
  id: text(row, 0) as UploadId,
  bucketId: integer(row, 1) as BucketId,
  length: integerOrNull(row, 2),
  offset: integer(row, 3),
  metadata: textOrNull(row, 4),
  filename: textOrNull(row, 5),
  declaredType: textOrNull(row, 6),
  mediaId: text(row, 7) as MediaId,
  finished: integer(row, 8) === 1,
  expiresAt: integer(row, 9),
})

/** An unfinished upload reserves one item and its length, or its offset while the length is unknown. */
export const reservedBy = ({ length, offset }: Pick<Upload, 'length' | 'offset'>) => ({
  items: 1,
  bytes: length ?? offset,
})
