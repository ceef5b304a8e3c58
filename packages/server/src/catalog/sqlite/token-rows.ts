import type { DatabaseSync } from 'node:sqlite'
import type { Actor } from '../../core/actor.ts'
import { tokenRevoked } from '../../core/fault.ts'
import { rotationEvent, tokenEvent } from '../audit-log/events.ts'
import type { Changes } from '../changes.ts'
import type { BucketId, TokenId } from '../records.ts'
import { integer, text } from '../rows.ts'
import type { NewToken } from '../token-records.ts'
import { prepareRecordEvents } from './audit-log.ts'
import { one } from './rows.ts'

/** The tokens; to be called within a transaction. Records changes in the audit log, if they have an actor. */
export interface TokenRows {
  insert(bucketId: BucketId, token: Omit<NewToken, 'bucket'>, by?: Actor): void
  /** Inserts the row of a user of an issuer, unless a row has its hash. Records no event. */
  insertOnce(bucketId: BucketId, user: Omit<NewToken, 'bucket'>): void
  /** As grantToken of the catalog. */
  grant(input: Changes['grant-token']['input']): undefined
  /** As rotateToken of the catalog. */
  rotate(input: Changes['rotate-token']['input']): boolean
  /** As revokeToken of the catalog. */
  revoke(input: Changes['revoke-token']['input']): boolean
  touch(id: TokenId, at: number): void
}

export function prepareTokenRows(db: DatabaseSync): TokenRows {
  const values = `INSERT INTO tokens
    (id, bucket_id, name, hash, scopes, created_at, expires_at) VALUES (?, ?, ?, ?, ?, ?, ?)`
  const insert = db.prepare(values)
  const insertOnce = db.prepare(`${values} ON CONFLICT (hash) DO NOTHING`)
  const findGrantor = db.prepare(`SELECT 1 FROM tokens
    WHERE id = ? AND bucket_id = ? AND revoked_at IS NULL AND coalesce(expires_at > ?, true)`)
  const insertSuccessor = db.prepare(`INSERT INTO tokens
    (id, bucket_id, name, hash, scopes, created_at, expires_at)
    SELECT ?1, bucket_id, name, ?2, scopes, ?3, ?4 FROM tokens
    WHERE id = ?5 AND bucket_id = ?6 AND revoked_at IS NULL AND coalesce(expires_at > ?3, true)`)
  const endReplaced = db.prepare(
    'UPDATE tokens SET expires_at = min(coalesce(expires_at, ?1), ?1) WHERE id = ?2',
  )
  const find = db.prepare('SELECT bucket_id, name, revoked_at FROM tokens WHERE id = ?')
  const revoke = db.prepare('UPDATE tokens SET revoked_at = ? WHERE id = ?')
  const touch = db.prepare('UPDATE tokens SET last_used_at = ? WHERE id = ?')

  const record = prepareRecordEvents(db)

  function requireGrantor(bucketId: BucketId, grantor: TokenId, now: number): void {
    if (!one(findGrantor, grantor, bucketId, now)) throw tokenRevoked()
  }

  const add: TokenRows['insert'] = (bucketId, token, by) => {
    const { id, name, hash, scopes, createdAt, expiresAt } = token
    insert.run(id, bucketId, name, hash, scopes.join(' '), createdAt, expiresAt)
    if (by !== undefined) record([tokenEvent(bucketId, token, by)])
  }

  return {
    insert: add,
    insertOnce(bucketId, { id, name, hash, scopes, createdAt, expiresAt }) {
      insertOnce.run(id, bucketId, name, hash, scopes.join(' '), createdAt, expiresAt)
    },
    grant({ bucketId, grantor, token, by }) {
      requireGrantor(bucketId, grantor, token.createdAt)
      add(bucketId, token, by)
    },
    rotate({ bucketId, grantor, successor, by }) {
      requireGrantor(bucketId, grantor, successor.createdAt)
      const { id, hash, createdAt, expiresAt, replaces, replacedUntil } = successor
      const added = insertSuccessor.run(id, hash, createdAt, expiresAt, replaces, bucketId).changes === 1
      if (added) endReplaced.run(replacedUntil, replaces)
      if (added && by !== undefined) record([rotationEvent(bucketId, successor, by)])
      return added
    },
    revoke({ id, at, by }) {
      const row = one(find, id)
      if (row === null) return false
      if (row[2] !== null) return true
      revoke.run(at, id)
      if (by !== undefined) {
        const bucketId = integer(row, 0) as BucketId
        record([{ action: 'token-revoke', by, bucketId, target: id, name: text(row, 1) }])
      }
      return true
    },
    touch: (id, at) => void touch.run(at, id),
  }
}
