import type { Actor } from '../../core/actor.ts'
import { tokenRevoked } from '../../core/fault.ts'
import { rotationEvent, tokenEvent } from '../audit-log/events.ts'
import type { Changes } from '../changes.ts'
import type { BucketId, TokenId } from '../records.ts'
import { integer, text } from '../rows.ts'
import type { GrantedToken } from '../token-records.ts'
import { recordEvents } from './audit-log.ts'
import type { Session } from './session.ts'

// The tokens; to be called within a transaction. Changes are recorded in the audit log, if they have an actor.

export async function insertToken(
  session: Session,
  bucketId: BucketId,
  token: GrantedToken,
  by?: Actor,
): Promise<void> {
  const { id, name, hash, scopes, createdAt, expiresAt } = token
  await session.run(
    `INSERT INTO tokens (id, bucket_id, name, hash, scopes, created_at, expires_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7)`,
    ...[id, bucketId, name, hash, scopes.join(' '), createdAt, expiresAt],
  )
  if (by !== undefined) await recordEvents(session, [tokenEvent(bucketId, token, by)])
}

/** Does nothing if a row has the hash. Waits for a transaction that is adding it. */
export async function insertUser(session: Session, bucketId: BucketId, user: GrantedToken): Promise<void> {
  const { id, name, hash, scopes, createdAt, expiresAt } = user
  await session.run(
    `INSERT INTO tokens (id, bucket_id, name, hash, scopes, created_at, expires_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (hash) DO NOTHING`,
    ...[id, bucketId, name, hash, scopes.join(' '), createdAt, expiresAt],
  )
}

/** As grantToken of the catalog. */
export async function grantToken(
  session: Session,
  { bucketId, grantor, token, by }: Changes['grant-token']['input'],
): Promise<undefined> {
  await requireGrantor(session, bucketId, grantor, token.createdAt)
  await insertToken(session, bucketId, token, by)
}

/** As rotateToken of the catalog. */
export async function rotateToken(
  session: Session,
  { bucketId, grantor, successor, by }: Changes['rotate-token']['input'],
): Promise<boolean> {
  await requireGrantor(session, bucketId, grantor, successor.createdAt)
  const { id, hash, createdAt, expiresAt, replaces, replacedUntil } = successor
  // The lock makes a concurrent rotation wait, so that it reads the expiry that the first one sets.
  const added = await session.change(
    `WITH replaced AS MATERIALIZED (SELECT * FROM tokens WHERE id = $5 AND bucket_id = $6 FOR UPDATE)
    INSERT INTO tokens (id, bucket_id, name, hash, scopes, created_at, expires_at)
    SELECT $1, bucket_id, name, $2, scopes, $3, $4 FROM replaced
    WHERE revoked_at IS NULL AND coalesce(expires_at > $3, true)`,
    ...[id, hash, createdAt, expiresAt, replaces, bucketId],
  )
  if (added !== 1) return false
  await session.run(
    'UPDATE tokens SET expires_at = least(coalesce(expires_at, $1), $1) WHERE id = $2',
    ...[replacedUntil, replaces],
  )
  if (by !== undefined) await recordEvents(session, [rotationEvent(bucketId, successor, by)])
  return true
}

/** As revokeToken of the catalog. */
export async function revokeToken(
  session: Session,
  { id, at, by }: Changes['revoke-token']['input'],
): Promise<boolean> {
  const [row] = await session.run(
    'SELECT bucket_id, name, revoked_at FROM tokens WHERE id = $1 FOR UPDATE',
    id,
  )
  if (row === undefined) return false
  if (row[2] !== null) return true
  await session.run('UPDATE tokens SET revoked_at = $1 WHERE id = $2', at, id)
  if (by !== undefined) {
    const bucketId = integer(row, 0) as BucketId
    await recordEvents(session, [{ action: 'token-revoke', by, bucketId, target: id, name: text(row, 1) }])
  }
  return true
}

/** The lock makes a revocation at the same time wait for the new token. */
async function requireGrantor(
  session: Session,
  bucketId: BucketId,
  grantor: TokenId,
  now: number,
): Promise<void> {
  const rows = await session.run(
    `SELECT 1 FROM tokens WHERE id = $1 AND bucket_id = $2 AND revoked_at IS NULL AND coalesce(expires_at > $3, true)
    FOR UPDATE`,
    ...[grantor, bucketId, now],
  )
  if (rows.length === 0) throw tokenRevoked()
}
