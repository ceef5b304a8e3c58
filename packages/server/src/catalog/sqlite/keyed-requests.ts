import type { DatabaseSync } from 'node:sqlite'
import { Type } from 'typebox'
import { Value } from 'typebox/value'
import { Fault } from '../../core/fault.ts'
import type { MediaId } from '../../core/media-id.ts'
import type { KeyedRequest, NewMedia } from '../catalog.ts'
import { bytes, one, text } from './rows.ts'

/** What each key of a token stood for first, kept beside the items because they may be gone by the time it is asked. */
export interface KeyedRequests {
  /** Null when the key is new or forgotten; throws Fault `idempotency-key-reused` when its content was another. */
  find(request: KeyedRequest): readonly NewMedia[] | null
  keep(request: KeyedRequest, items: readonly NewMedia[]): void
  forget(now: number): number
}

export function prepareKeyedRequests(db: DatabaseSync): KeyedRequests {
  const select = db.prepare(`SELECT fingerprint, items FROM keyed_requests
    WHERE token_id = ? AND key = ? AND expires_at > ?`)
  const upsert = db.prepare(`INSERT INTO keyed_requests (token_id, key, fingerprint, items, expires_at)
    VALUES (?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET
    fingerprint = excluded.fingerprint, items = excluded.items, expires_at = excluded.expires_at`)
  const forget = db.prepare('DELETE FROM keyed_requests WHERE expires_at <= ?')

  return {
    find({ tokenId, key, fingerprint, now }) {
      const row = one(select, tokenId, key, now)
      if (!row) return null
      if (!Buffer.from(bytes(row, 0)).equals(fingerprint))
        throw new Fault(
          'idempotency-key-reused',
          'This Idempotency-Key was used for other files; use a new one.',
        )
      return readItems(text(row, 1))
    },

    keep({ tokenId, key, fingerprint, expiresAt }, items) {
      upsert.run(tokenId, key, fingerprint, writeItems(items), expiresAt)
    },

    forget: (now) => Number(forget.run(now).changes),
  }
}

const writeItems = (items: readonly NewMedia[]): string =>
  JSON.stringify(
    items.map((item) => ({ ...item, sha256: item.sha256 && Buffer.from(item.sha256).toString('hex') })),
  )

const TextOrNull = Type.Union([Type.String(), Type.Null()])
const CountOrNull = Type.Union([Type.Integer(), Type.Null()])

const StoredItems = Type.Array(
  Type.Object({
    id: Type.String(),
    filename: TextOrNull,
    contentType: Type.String(),
    extension: TextOrNull,
    size: Type.Integer(),
    sha256: TextOrNull,
    width: CountOrNull,
    height: CountOrNull,
    createdAt: Type.Integer(),
  }),
)

const readItems = (stored: string): readonly NewMedia[] =>
  Value.Parse(StoredItems, JSON.parse(stored)).map((item) => ({
    ...item,
    id: item.id as MediaId,
    sha256: item.sha256 === null ? null : new Uint8Array(Buffer.from(item.sha256, 'hex')),
  }))
