import type { UploadId } from '../../core/upload-id.ts'
import { bytes, integer, type Row, text, textOrNull } from '../rows.ts'
import type { OffsetMove, StoredParts, UploadParts } from '../upload-records.ts'
import type { Transaction } from './media-rows.ts'
import type { Session } from './session.ts'
import { moveUpload } from './upload-rows.ts'

/** Pieces are joined up to this length, so that short chunks do not become many rows. Bytes. */
const maxPiece = 65_536

type Run = (statement: string, ...values: unknown[]) => Promise<Row[]>

export async function readParts(run: Run, id: UploadId): Promise<UploadParts | null> {
  // One statement, and so one snapshot.
  const rows = await run(
    `SELECT multipart, number, size, etag FROM uploads LEFT JOIN upload_parts ON upload_id = id
    WHERE id = $1 AND finished = 0 ORDER BY number`,
    id,
  )
  const [first] = rows
  if (!first) return null
  const parts = rows
    .filter((row) => row[1] !== null)
    .map((row) => ({ number: integer(row, 1), size: integer(row, 2), etag: text(row, 3) }))
  return { multipart: textOrNull(first, 0), parts }
}

export async function readPieces(run: Run, id: UploadId): Promise<Uint8Array[]> {
  const rows = await run('SELECT bytes FROM upload_pieces WHERE upload_id = $1 ORDER BY number', id)
  return rows.map((row) => bytes(row, 0))
}

/** As Catalog.beginParts. */
export async function beginParts(
  { session }: Transaction,
  id: UploadId,
  multipart: string,
): Promise<string | null> {
  const [row] = await session.run(
    `UPDATE uploads SET multipart = coalesce(multipart, $1) WHERE id = $2 AND finished = 0 RETURNING multipart`,
    multipart,
    id,
  )
  return row ? text(row, 0) : null
}

/** As Catalog.storeParts. */
export async function storeParts(
  transaction: Transaction,
  id: UploadId,
  { parts, piece }: StoredParts,
  move: OffsetMove,
): Promise<boolean> {
  if (!(await moveUpload(transaction, id, move))) return false
  const { session } = transaction
  for (const { number, size, etag } of parts)
    await session.run(
      'INSERT INTO upload_parts (upload_id, number, size, etag) VALUES ($1, $2, $3, $4)',
      id,
      number,
      size,
      etag,
    )
  if (parts.length > 0) await session.run('DELETE FROM upload_pieces WHERE upload_id = $1', id)
  if (piece.byteLength > 0) await addPiece(session, id, piece)
  return true
}

async function addPiece(session: Session, id: UploadId, piece: Uint8Array): Promise<void> {
  await session.run(
    `WITH last AS (SELECT number, length(bytes) AS size FROM upload_pieces WHERE upload_id = $1
      ORDER BY number DESC LIMIT 1),
    target AS (SELECT coalesce((SELECT CASE WHEN size + length($2::bytea) <= $3::int8 THEN number ELSE number + 1 END
      FROM last), 0) AS number)
    INSERT INTO upload_pieces (upload_id, number, bytes) SELECT $1, number, $2 FROM target
    ON CONFLICT (upload_id, number) DO UPDATE SET bytes = upload_pieces.bytes || excluded.bytes`,
    id,
    piece,
    maxPiece,
  )
}
