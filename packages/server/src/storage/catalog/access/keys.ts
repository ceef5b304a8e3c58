import type { Actor } from '../../../core/token-rules.ts'
import type { AuditEvent } from '../audit/audit-events.ts'
import { auditedWritesOf } from '../declarations.ts'
import { all, bytes, integer, type Query, type Row, record, text, type Work, write } from '../statements.ts'

/** A key that signs URLs (docs/interface.md H8). */
export interface SigningKey {
  readonly id: string
  /** 32 bytes. */
  readonly secret: Uint8Array
  /** Milliseconds since 1970. */
  readonly createdAt: number
}

/** Reads of which engines have their own version. */
export interface KeyReads {
  /** All keys in the order of their creation: the last one signs. Reflects every write that was committed before the call. */
  signingKeys(): readonly SigningKey[]
}

const readKey = (row: Row): SigningKey => ({
  id: text(row, 0),
  secret: bytes(row, 1),
  createdAt: integer(row, 2),
})

export const listKeys = (): Query<SigningKey[]> =>
  all(readKey, 'SELECT id, secret, created_at FROM signing_keys ORDER BY number')

/** Adds a key; with `onlyFirst`, only if there is none. */
export function* addSigningKey(
  { id, secret, createdAt }: SigningKey,
  onlyFirst: boolean,
  by?: Actor,
): Work<undefined> {
  // Others that add a key wait until this transaction ends. Reads do not.
  if (onlyFirst) yield* write(tableLock)
  const condition = onlyFirst ? 'NOT EXISTS (SELECT 1 FROM signing_keys)' : 'true'
  const added = yield* write(
    `INSERT INTO signing_keys (id, secret, created_at) SELECT $1, $2::bytea, $3::int8 WHERE ${condition}`,
    ...[id, secret, createdAt],
  )
  if (added === 1) yield* record(by, (by) => keyEvent('key-create', id, by))
}

const tableLock = { sqlite: null, postgres: 'LOCK TABLE signing_keys IN SHARE ROW EXCLUSIVE MODE' }

/** False if there is no such key. */
export function* removeSigningKey(id: string, by?: Actor): Work<boolean> {
  const isRemoved = (yield* write('DELETE FROM signing_keys WHERE id = $1', id)) === 1
  if (isRemoved) yield* record(by, (by) => keyEvent('key-remove', id, by))
  return isRemoved
}

/** Replaces all keys. */
export function* replaceKeys(keys: readonly SigningKey[]): Work<void> {
  yield* write('DELETE FROM signing_keys')
  for (const key of keys) yield* addSigningKey(key, false)
}

const keyEvent = (action: 'key-create' | 'key-remove', id: string, by: Actor): AuditEvent => ({
  action,
  by,
  bucketId: null,
  target: id,
})

export const writes = auditedWritesOf({ addSigningKey, removeSigningKey })
