import type { DatabaseSync } from 'node:sqlite'
import type { UploadId } from '../../core/upload-id.ts'
import type { AddedContent } from '../audit-log/events.ts'
import { reservedBy, uploadColumns, uploadOf } from '../upload-columns.ts'
import type { NewUpload, OffsetMove, StoredParts, Upload } from '../upload-records.ts'
import type { Quotas } from './buckets.ts'
import type { MediaRows } from './media-rows.ts'
import { one } from './rows.ts'
import { prepareWriteParts } from './upload-parts.ts'

/** The only code that writes upload rows. Also updates the bucket's reservations. */
export interface UploadRows {
  create(upload: NewUpload): void
  declareLength(id: UploadId, length: number): boolean
  move(id: UploadId, from: number, to: number, expiresAt: number): boolean
  beginParts(id: UploadId, multipart: string): string | null
  storeParts(id: UploadId, stored: StoredParts, move: OffsetMove): boolean
  finish(
    id: UploadId,
    added: AddedContent,
    ended: { readonly expiresAt: number; readonly received: number },
  ): boolean
  remove(id: UploadId, onlyUnfinished: boolean): boolean
}

export function prepareUploadRows(db: DatabaseSync, quotas: Quotas, media: MediaRows): UploadRows {
  const select = db.prepare(`SELECT ${uploadColumns} FROM uploads WHERE id = ?`)
  const insert = db.prepare(`INSERT INTO uploads
    (id, bucket_id, length, metadata, filename, declared_type, media_id, expires_at)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?)`)
  const setLength = db.prepare('UPDATE uploads SET length = ? WHERE id = ?')
  const setReceived = db.prepare('UPDATE uploads SET received = ?, expires_at = ? WHERE id = ?')
  const setFinished = db.prepare(
    'UPDATE uploads SET received = length, finished = 1, media_id = ?, expires_at = ? WHERE id = ?',
  )
  const remove = db.prepare('DELETE FROM uploads WHERE id = ?')
  const parts = prepareWriteParts(db)

  const unfinished = (id: UploadId): Upload | null => {
    const row = one(select, id)
    const upload = row && uploadOf(row)
    return upload?.finished === false ? upload : null
  }

  function move(id: UploadId, from: number, to: number, expiresAt: number): boolean {
    const upload = unfinished(id)
    if (upload?.offset !== from) return false
    if (upload.length === null) quotas.reserve(upload.bucketId, { items: 0, bytes: to - from })
    setReceived.run(to, expiresAt, id)
    return true
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

    move,

    beginParts: (id, multipart) => (unfinished(id) ? parts.begin(id, multipart) : null),

    storeParts(id, stored, { from, to, expiresAt }) {
      if (!move(id, from, to, expiresAt)) return false
      parts.store(id, stored)
      return true
    },

    finish(id, added, { expiresAt, received }) {
      const upload = unfinished(id)
      if (upload?.length !== received) return false
      quotas.settle(upload.bucketId, reservedBy(upload))
      media.append(upload.bucketId, [added])
      setFinished.run(added.item.id, expiresAt, id)
      parts.remove(id)
      return true
    },

    remove(id, onlyUnfinished) {
      const upload = unfinished(id)
      if (upload) {
        const { items, bytes } = reservedBy(upload)
        quotas.reserve(upload.bucketId, { items: -items, bytes: -bytes })
        parts.remove(id)
      } else if (onlyUnfinished) return false
      return remove.run(id).changes === 1
    },
  }
}
