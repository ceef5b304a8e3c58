import type { DatabaseSync } from 'node:sqlite'
import type { UploadId } from '../../core/upload-id.ts'
import { bytes, integer, text } from '../rows.ts'
import type { StoredParts } from '../upload-records.ts'
import { one } from './rows.ts'

/** Pieces are joined up to this length, so that short chunks do not become many rows. Bytes. */
const maxPiece = 65_536

/** Writes the parts and pieces of uploads. Call the functions for an unfinished upload, within a transaction. */
export function prepareWriteParts(db: DatabaseSync) {
  const begin = db.prepare(
    'UPDATE uploads SET multipart = coalesce(multipart, ?) WHERE id = ? RETURNING multipart',
  )
  const addPart = db.prepare('INSERT INTO upload_parts (upload_id, number, size, etag) VALUES (?, ?, ?, ?)')
  const lastPiece = db.prepare(
    'SELECT number, bytes FROM upload_pieces WHERE upload_id = ? ORDER BY number DESC LIMIT 1',
  )
  const putPiece = db.prepare(`INSERT INTO upload_pieces (upload_id, number, bytes) VALUES (?, ?, ?)
    ON CONFLICT DO UPDATE SET bytes = excluded.bytes`)
  const removePieces = db.prepare('DELETE FROM upload_pieces WHERE upload_id = ?')
  const removeParts = db.prepare('DELETE FROM upload_parts WHERE upload_id = ?')

  function append(id: UploadId, piece: Uint8Array): void {
    const row = one(lastPiece, id)
    if (!row) return void putPiece.run(id, 0, piece)
    const last = bytes(row, 1)
    if (last.byteLength + piece.byteLength > maxPiece) putPiece.run(id, integer(row, 0) + 1, piece)
    else putPiece.run(id, integer(row, 0), Buffer.concat([last, piece]))
  }

  return {
    begin: (id: UploadId, multipart: string): string => text(one(begin, multipart, id) ?? [], 0),
    store(id: UploadId, { parts, piece }: StoredParts): void {
      for (const { number, size, etag } of parts) addPart.run(id, number, size, etag)
      if (parts.length > 0) removePieces.run(id)
      if (piece.byteLength > 0) append(id, piece)
    },
    remove(id: UploadId): void {
      for (const removal of [removePieces, removeParts]) removal.run(id)
    },
  }
}
