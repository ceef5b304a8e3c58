import type { DatabaseSync } from 'node:sqlite'
import type { UploadId } from '../../core/upload-id.ts'
import type { BucketId } from '../records.ts'
import { bytes, integer, text, textOrNull } from '../rows.ts'
import { uploadColumns, uploadOf } from '../upload-columns.ts'
import type { Upload, UploadParts } from '../upload-records.ts'
import { all, one } from './rows.ts'

/** The reads of resumable uploads. Times are in milliseconds since 1970. */
export interface UploadReads {
  upload(id: UploadId): Upload | null
  uploadParts(id: UploadId): UploadParts | null
  uploadPieces(id: UploadId): Uint8Array[]
  unfinishedUploads(): Upload[]
  expiredUploads(now: number): Upload[]
  uploadsOf(id: BucketId): Upload[]
}

export function prepareUploadReads(db: DatabaseSync): UploadReads {
  const select = (condition: string) => db.prepare(`SELECT ${uploadColumns} FROM uploads WHERE ${condition}`)
  const upload = select('id = ?')
  const unfinished = select('finished = 0')
  const expired = select('expires_at <= ?')
  const uploadsOf = select('bucket_id = ?')
  const multipart = db.prepare('SELECT multipart FROM uploads WHERE id = ? AND finished = 0')
  const parts = db.prepare('SELECT number, size, etag FROM upload_parts WHERE upload_id = ? ORDER BY number')
  const pieces = db.prepare('SELECT bytes FROM upload_pieces WHERE upload_id = ? ORDER BY number')

  return {
    upload(id) {
      const row = one(upload, id)
      return row && uploadOf(row)
    },

    uploadParts(id) {
      const row = one(multipart, id)
      if (!row) return null
      const found = all(parts, id).map((part) => ({
        ...{ number: integer(part, 0), size: integer(part, 1), etag: text(part, 2) },
      }))
      return { multipart: textOrNull(row, 0), parts: found }
    },

    uploadPieces: (id) => all(pieces, id).map((row) => bytes(row, 0)),
    unfinishedUploads: () => all(unfinished).map(uploadOf),
    expiredUploads: (now) => all(expired, now).map(uploadOf),
    uploadsOf: (id) => all(uploadsOf, id).map(uploadOf),
  }
}
