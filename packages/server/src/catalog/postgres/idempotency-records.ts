import { readKeyedItem, requireSameFingerprint, serializeItems } from '../keyed-requests.ts'
import type { BucketId, IdempotentRequest, NewMedia } from '../records.ts'
import { bytes, type Row } from '../rows.ts'
import type { Session } from './session.ts'

type Run = (statement: string, ...values: unknown[]) => Promise<Row[]>

/** The items of the first request with the key; null if the key is new or expired. Throws Fault `idempotency-key-reused`. */
export async function findRepeated(
  run: Run,
  { tokenId, key, fingerprint, now }: IdempotentRequest,
): Promise<readonly NewMedia[] | null> {
  const rows = await run(
    `SELECT value ->> 'id', value ->> 'filename', value ->> 'contentType', value ->> 'extension',
      (value ->> 'size')::int8, decode(value ->> 'sha256', 'hex'), (value ->> 'width')::int4,
      (value ->> 'height')::int4, (value ->> 'createdAt')::int8, fingerprint, (value ->> 'expiresAt')::int8
    FROM keyed_requests, json_array_elements(items) WITH ORDINALITY AS item (value, number)
    WHERE token_id = $1 AND key = $2 AND expires_at > $3 ORDER BY item.number`,
    tokenId,
    key,
    now,
  )
  const [first] = rows
  if (!first) return null
  requireSameFingerprint(bytes(first, 9), fingerprint)
  return rows.map((row) => readKeyedItem(row, 10))
}

/** To be called within a transaction that holds the lock of the bucket. */
export async function storeRepeatable(
  session: Session,
  bucketId: BucketId,
  { tokenId, key, fingerprint, expiresAt }: Omit<IdempotentRequest, 'now'>,
  items: readonly NewMedia[],
): Promise<void> {
  await session.run(
    `INSERT INTO keyed_requests (bucket_id, token_id, key, fingerprint, items, expires_at)
    VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (token_id, key) DO UPDATE SET
    fingerprint = excluded.fingerprint, items = excluded.items, expires_at = excluded.expires_at`,
    bucketId,
    tokenId,
    key,
    fingerprint,
    serializeItems(items),
    expiresAt,
  )
}
