import type { DatabaseSync } from 'node:sqlite'
import type { MediaId } from '../../core/media-id.ts'
import type { UploadId } from '../../core/upload-id.ts'
import type { BucketId, NewMediaContent, NewUpload, Upload } from '../records.ts'
import type { Quotas } from './buckets.ts'
import type { MediaRows } from './media-rows.ts'
import { integer, integerOrNull, one, type Row, text, textOrNull } from './rows.ts'

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

/** The only code that writes upload rows. Also updates the bucket's reservations. */
export interface UploadRows {
  create(upload: NewUpload): void
  declareLength(id: UploadId, length: number): boolean
  move(id: UploadId, from: number, to: number, expiresAt: number): boolean
  finish(id: UploadId, added: NewMediaContent, expiresAt: number): boolean
  remove(id: UploadId): boolean
}

/** An unfinished upload reserves one item and its length, or its offset while the length is unknown. */
const reservedBy = ({ length, offset }: Pick<Upload, 'length' | 'offset'>) => ({
  items: 1,
  bytes: length ?? offset,
})

export function prepareUploadRows(db: DatabaseSync, quotas: Quotas, media: MediaRows): UploadRows {
  const select = db.prepare(`SELECT ${uploadColumns} FROM uploads WHERE id = ?`)
  const insert = db.prepare(`INSERT INTO uploads
    (id, bucket_id, length, metadata, filename, declared_type, media_id, expires_at)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?)`)
  const setLength = db.prepare('UPDATE uploads SET length = ? WHERE id = ?')
  const setReceived = db.prepare('UPDATE uploads SET received = ?, expires_at = ? WHERE id = ?')
  const setFinished = db.prepare(
    'UPDATE uploads SET received = length, finished = 1, expires_at = ? WHERE id = ?',
  )
  const remove = db.prepare('DELETE FROM uploads WHERE id = ?')

  const unfinished = (id: UploadId): Upload | null => {
    const row = one(select, id)
    const upload = row && uploadOf(row)
    return upload?.finished === false ? upload : null
  }

  return {
    create(upload) {
      quotas.reserve(upload.bucketId, reservedBy({ ...upload, offset: 0 }))
      insert.run(
        upload.id,
        upload.bucketId,
        upload.length,
        upload.metadata,
        upload.filename,
        upload.declaredType,
        upload.mediaId,
        upload.expiresAt,
      )
    },

    declareLength(id, length) {
      const upload = unfinished(id)
      if (!upload || upload.length !== null) return false
      quotas.reserve(upload.bucketId, { items: 0, bytes: length - upload.offset })
      setLength.run(length, id)
      return true
    },

    move(id, from, to, expiresAt) {
      const upload = unfinished(id)
      if (upload?.offset !== from) return false
      if (upload.length === null) quotas.reserve(upload.bucketId, { items: 0, bytes: to - from })
      setReceived.run(to, expiresAt, id)
      return true
    },

    finish(id, added, expiresAt) {
      const upload = unfinished(id)
      if (upload?.length !== added.item.size) return false
      quotas.settle(upload.bucketId, reservedBy(upload))
      media.append(upload.bucketId, [added])
      setFinished.run(expiresAt, id)
      return true
    },

    remove(id) {
      const upload = unfinished(id)
      if (upload) {
        const { items, bytes } = reservedBy(upload)
        quotas.reserve(upload.bucketId, { items: -items, bytes: -bytes })
      }
      return remove.run(id).changes === 1
    },
  }
}
