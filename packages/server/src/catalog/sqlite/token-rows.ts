import type { DatabaseSync } from 'node:sqlite'
import { tokenRevoked } from '../../core/fault.ts'
import type { Changes } from '../changes.ts'
import type { BucketId, TokenId } from '../records.ts'
import type { NewToken } from '../token-records.ts'
import { one } from './rows.ts'

/** The tokens; to be called within a transaction. */
export interface TokenRows {
  insert(bucketId: BucketId, token: Omit<NewToken, 'bucket'>): void
  /** As grantToken of the catalog. */
  grant(input: Changes['grant-token']['input']): undefined
  /** As rotateToken of the catalog. */
  rotate(input: Changes['rotate-token']['input']): boolean
  /** As revokeToken of the catalog. */
  revoke(id: TokenId, at: number): boolean
  touch(id: TokenId, at: number): void
}

export function prepareTokenRows(db: DatabaseSync): TokenRows {
  const insert = db.prepare(`INSERT INTO tokens
    (id, bucket_id, name, hash, scopes, created_at, expires_at) VALUES (?, ?, ?, ?, ?, ?, ?)`)
  const findGrantor = db.prepare('SELECT 1 FROM tokens WHERE id = ? AND bucket_id = ? AND revoked_at IS NULL')
  const insertSuccessor = db.prepare(`INSERT INTO tokens
    (id, bucket_id, name, hash, scopes, created_at, expires_at)
    SELECT ?1, bucket_id, name, ?2, scopes, ?3, ?4 FROM tokens
    WHERE id = ?5 AND bucket_id = ?6 AND revoked_at IS NULL AND coalesce(expires_at > ?3, true)`)
  const endReplaced = db.prepare(
    'UPDATE tokens SET expires_at = min(coalesce(expires_at, ?1), ?1) WHERE id = ?2',
  )
  const revoke = db.prepare('UPDATE tokens SET revoked_at = coalesce(revoked_at, ?) WHERE id = ?')
  const touch = db.prepare('UPDATE tokens SET last_used_at = ? WHERE id = ?')

  function requireGrantor(bucketId: BucketId, grantor: TokenId): void {
    if (!one(findGrantor, grantor, bucketId)) throw tokenRevoked()
  }

  const add: TokenRows['insert'] = (bucketId, { id, name, hash, scopes, createdAt, expiresAt }) => {
    insert.run(id, bucketId, name, hash, scopes.join(' '), createdAt, expiresAt)
  }

  return {
    insert: add,
    grant({ bucketId, grantor, token }) {
      requireGrantor(bucketId, grantor)
      add(bucketId, token)
    },
    rotate({ bucketId, grantor, successor }) {
      requireGrantor(bucketId, grantor)
      const { id, hash, createdAt, expiresAt, replaces, replacedUntil } = successor
      const added = insertSuccessor.run(id, hash, createdAt, expiresAt, replaces, bucketId).changes === 1
      if (added) endReplaced.run(replacedUntil, replaces)
      return added
    },
    revoke: (id, at) => revoke.run(at, id).changes === 1,
    touch: (id, at) => void touch.run(at, id),
  }
}
