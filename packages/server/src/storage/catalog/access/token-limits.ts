import { tokenRevoked } from '../../../core/faults.ts'
import {
  type Amount,
  type LimitUse,
  leftOf,
  parseStoredLimits,
  requireWithinLimits,
  storedLimits,
  type TokenLimits,
} from '../../../core/quotas.ts'
import type { BucketId, TokenId } from '../records.ts'
import { all, first, integer, type Query, type Row, text, type Work, write } from '../statements.ts'

// The rows of `token_limits`. A transaction that changes one has locked its bucket.

/** Reads limits, items, bytes, reserved items and reserved bytes, from this column on. */
export const readLimitRow = (row: Row, column = 0): TokenLimits & LimitUse => ({
  ...parseStoredLimits(text(row, column)),
  used: { items: integer(row, column + 1), bytes: integer(row, column + 2) },
  reserved: { items: integer(row, column + 3), bytes: integer(row, column + 4) },
})

/** Adds the limits of a new token. `id` is that of the token. */
export function* insertLimits(id: TokenId, bucketId: BucketId, limits: TokenLimits): Work<void> {
  yield* write(
    'INSERT INTO token_limits (id, bucket_id, limits) VALUES ($1, $2, $3)',
    ...[id, bucketId, storedLimits(limits)],
  )
}

/** Adds limits of another catalog, or updates them. Unfinished uploads are not transferred, and so nothing is reserved. */
export function* transferLimits(
  bucketId: BucketId,
  { id, used, ...limits }: TokenLimits & Pick<LimitUse, 'used'> & { readonly id: TokenId },
): Work<void> {
  yield* write(
    `INSERT INTO token_limits (id, bucket_id, limits, items, bytes) VALUES ($1, $2, $3, $4, $5)
    ON CONFLICT (id) DO UPDATE SET items = excluded.items, bytes = excluded.bytes`,
    ...[id, bucketId, storedLimits(limits), used.items, used.bytes],
  )
}

/** A change of what has been uploaded with limits, and of what is reserved. */
interface LimitChange {
  readonly used?: Amount
  readonly reserved?: Amount
}

const noAmount: Amount = { items: 0, bytes: 0 }

/**
 * Counts an upload in the limits with this id; null for none. Throws Fault `token-limit-exceeded` if `more` does not fit. To be called within
 * a transaction that holds the lock of the bucket.
 */
export function* countLimited(
  id: TokenId | null,
  more: Amount,
  { used = noAmount, reserved = noAmount }: LimitChange,
): Work<void> {
  if (id === null) return
  const found = yield* first(
    readLimitRow,
    'SELECT limits, items, bytes, reserved_items, reserved_bytes FROM token_limits WHERE id = $1',
    id,
  )
  // The limits are removed with their bucket.
  if (found === null) throw tokenRevoked()
  requireWithinLimits(found, leftOf(found, found), more)
  yield* write(
    `UPDATE token_limits SET items = items + $2, bytes = bytes + $3, reserved_items = reserved_items + $4,
    reserved_bytes = reserved_bytes + $5 WHERE id = $1`,
    ...[id, used.items, used.bytes, reserved.items, reserved.bytes],
  )
}

/** What unfinished uploads reserve of limits, the id of which is in this column: items, and bytes. */
const reservedOf = (id: string) => ({
  items: `(SELECT count(*) FROM uploads WHERE limited_by = ${id} AND finished = 0)
    + (SELECT count(*) FROM object_uploads WHERE limited_by = ${id} AND item IS NULL)`,
  bytes: `(coalesce((SELECT sum(coalesce(length, received)) FROM uploads WHERE limited_by = ${id} AND finished = 0), 0)
    + coalesce((SELECT sum(size) FROM object_parts JOIN object_uploads ON object_uploads.id = upload_id
      WHERE limited_by = ${id} AND item IS NULL), 0))::int8`,
})

const counted = reservedOf('token_limits.id')

/** What the limits of a bucket have reserved that does not match their unfinished uploads, and what these reserve, as texts. */
export function wrongReservations(
  bucketId: BucketId,
): Query<{ readonly stored: string; readonly counted: string }[]> {
  const textOf = (row: Row, column: number) =>
    `${text(row, column)} items, ${text(row, column + 1)} bytes of the limits ${text(row, 0)}`
  return all(
    (row) => ({ stored: textOf(row, 1), counted: textOf(row, 3) }),
    `SELECT id, CAST(reserved_items AS text), CAST(reserved_bytes AS text), CAST(items AS text), CAST(bytes AS text) FROM (
      SELECT id, reserved_items, reserved_bytes, ${counted.items} AS items, ${counted.bytes} AS bytes
      FROM token_limits WHERE bucket_id = $1) AS counted
    WHERE reserved_items <> items OR reserved_bytes <> bytes`,
    bucketId,
  )
}

/** Corrects what the limits of a bucket have reserved. */
export function* correctLimits(bucketId: BucketId): Work<void> {
  yield* write(
    `UPDATE token_limits SET reserved_items = ${counted.items}, reserved_bytes = ${counted.bytes} WHERE bucket_id = $1`,
    bucketId,
  )
}
