import { type Amount, requireWithinQuota } from '../../core/quota.ts'
import type { UploadId } from '../../core/upload-id.ts'
import type { AddedContent } from '../audit-log/events.ts'
import type { BucketId } from '../records.ts'
import { reservedBy, uploadColumns, uploadOf } from '../upload-columns.ts'
import type { NewUpload, Upload } from '../upload-records.ts'
import { appendMedia, type Transaction } from './media-rows.ts'
import { removeParts } from './remove-parts.ts'

// The only code that writes upload rows. Also updates the bucket's reservations. All throw Fault `quota-exceeded`.

export async function createUpload(transaction: Transaction, upload: NewUpload): Promise<void> {
  const { id, bucketId, length, metadata, filename, declaredType, mediaId, expiresAt } = upload
  await reserve(transaction, bucketId, reservedBy({ length, offset: 0 }))
  await transaction.session.run(
    `INSERT INTO uploads (id, bucket_id, length, metadata, filename, declared_type, media_id, expires_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`,
    id,
    bucketId,
    length,
    metadata,
    filename,
    declaredType,
    mediaId,
    expiresAt,
  )
}

export async function declareLength(
  transaction: Transaction,
  id: UploadId,
  length: number,
): Promise<boolean> {
  const upload = await unfinished(transaction, id)
  if (!upload || upload.length !== null) return false
  await reserve(transaction, upload.bucketId, { items: 0, bytes: length - upload.offset })
  await transaction.session.run('UPDATE uploads SET length = $1 WHERE id = $2', length, id)
  return true
}

export async function moveUpload(
  transaction: Transaction,
  id: UploadId,
  { from, to, expiresAt }: { readonly from: number; readonly to: number; readonly expiresAt: number },
): Promise<boolean> {
  const upload = await unfinished(transaction, id)
  if (upload?.offset !== from) return false
  if (upload.length === null) await reserve(transaction, upload.bucketId, { items: 0, bytes: to - from })
  const statement = 'UPDATE uploads SET received = $1, expires_at = $2 WHERE id = $3'
  await transaction.session.run(statement, to, expiresAt, id)
  return true
}

export async function finishUpload(
  transaction: Transaction,
  id: UploadId,
  added: AddedContent,
  { expiresAt, received }: { readonly expiresAt: number; readonly received: number },
): Promise<boolean> {
  const upload = await unfinished(transaction, id)
  if (upload?.length !== received) return false
  const bucket = transaction.buckets.get(upload.bucketId)
  const reserved = reservedBy(upload)
  // Other reservations do not count, because this one came first.
  requireWithinQuota(bucket, bucket, reserved)
  await changeReservation(transaction, upload.bucketId, { items: -reserved.items, bytes: -reserved.bytes })
  await appendMedia(transaction, upload.bucketId, [added])
  await transaction.session.run(
    'UPDATE uploads SET received = length, finished = 1, media_id = $1, expires_at = $2 WHERE id = $3',
    added.item.id,
    expiresAt,
    id,
  )
  await removeParts(transaction.session, id)
  return true
}

export async function removeUpload(
  transaction: Transaction,
  id: UploadId,
  onlyUnfinished: boolean,
): Promise<boolean> {
  const upload = await unfinished(transaction, id)
  if (upload) {
    const { items, bytes } = reservedBy(upload)
    await changeReservation(transaction, upload.bucketId, { items: -items, bytes: -bytes })
  }
  return (
    (await transaction.session.change(
      'DELETE FROM uploads WHERE id = $1 AND (finished = 0 OR NOT $2::bool)',
      id,
      onlyUnfinished,
    )) === 1
  )
}

async function unfinished({ session, buckets }: Transaction, id: UploadId): Promise<Upload | null> {
  const [row] = await session.run(`SELECT ${uploadColumns} FROM uploads WHERE id = $1 AND finished = 0`, id)
  const upload = row ? uploadOf(row) : null
  return upload && buckets.has(upload.bucketId) ? upload : null
}

async function reserve(transaction: Transaction, bucketId: BucketId, more: Amount): Promise<void> {
  transaction.buckets.requireRoom(bucketId, more)
  await changeReservation(transaction, bucketId, more)
}

async function changeReservation(
  { session, buckets }: Transaction,
  bucketId: BucketId,
  { items, bytes }: Amount,
): Promise<void> {
  await session.run(
    `UPDATE buckets SET reserved_items = reserved_items + $1, reserved_bytes = reserved_bytes + $2
    WHERE id = $3`,
    items,
    bytes,
    bucketId,
  )
  buckets.add(bucketId, { reservedItems: items, reservedBytes: bytes })
}
