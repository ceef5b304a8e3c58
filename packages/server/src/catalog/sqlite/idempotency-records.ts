import type { DatabaseSync } from 'node:sqlite'
import { readKeyedItem, requireSameFingerprint, serializeItems } from '../keyed-requests.ts'
import type { IdempotentRequest, NewMedia } from '../records.ts'
import { bytes } from '../rows.ts'
import { all, one } from './rows.ts'

/** The items of the first request with each key. They are stored here because they may be deleted before the retry. */
export interface IdempotencyRecords {
  /** Null if the key is new or expired. Throws Fault `idempotency-key-reused` if the fingerprint differs. */
  find(request: IdempotentRequest): readonly NewMedia[] | null
  store(request: Omit<IdempotentRequest, 'now'>, items: readonly NewMedia[]): void
  /** Deletes the records that expired at `now` or before; returns how many. */
  deleteExpired(now: number): number
}

export function prepareIdempotencyRecords(db: DatabaseSync): IdempotencyRecords {
  const select = db.prepare(`SELECT fingerprint FROM keyed_requests
    WHERE token_id = ? AND key = ? AND expires_at > ?`)
  const selectItems =
    db.prepare(`SELECT value ->> 'id', value ->> 'filename', value ->> 'contentType', value ->> 'extension',
    value ->> 'size', unhex(value ->> 'sha256'), value ->> 'width', value ->> 'height', value ->> 'createdAt',
      value ->> 'expiresAt'
    FROM keyed_requests, json_each(items) AS item WHERE token_id = ? AND keyed_requests.key = ? ORDER BY item.key`)
  const upsert = db.prepare(`INSERT INTO keyed_requests (token_id, key, fingerprint, items, expires_at)
    VALUES (?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET
    fingerprint = excluded.fingerprint, items = excluded.items, expires_at = excluded.expires_at`)
  const deleteExpired = db.prepare('DELETE FROM keyed_requests WHERE expires_at <= ?')

  return {
    find({ tokenId, key, fingerprint, now }) {
      const row = one(select, tokenId, key, now)
      if (!row) return null
      requireSameFingerprint(bytes(row, 0), fingerprint)
      return all(selectItems, tokenId, key).map((row) => readKeyedItem(row, 9))
    },

    store({ tokenId, key, fingerprint, expiresAt }, items) {
      upsert.run(tokenId, key, fingerprint, serializeItems(items), expiresAt)
    },

    deleteExpired: (now) => Number(deleteExpired.run(now).changes),
  }
}
