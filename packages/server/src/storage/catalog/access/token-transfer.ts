import { all, bytes, type Query, type Row, textOrNull, type Work, write } from '../statements.ts'
import { transferLimits } from './token-limits.ts'
import { readToken, type TokenRecord } from './tokens.ts'

// The tokens that are copied to another catalog.

export interface TransferredToken extends Omit<TokenRecord, 'bucket'> {
  /** SHA-256 of the token, 32 bytes. */
  readonly hash: Uint8Array
  /** The token that replaced it. */
  readonly replacedBy: string | null
}

function readTransferredToken(row: Row): TransferredToken {
  const { bucket: _bucket, ...token } = readToken(row)
  return { ...token, hash: bytes(row, 16), replacedBy: textOrNull(row, 17) }
}

const tokenRows = `SELECT tokens.id, '', name, scopes, created_at, expires_at, last_used_at, revoked_at, note, token_limits.id, limits,
  token_limits.items, token_limits.bytes, reserved_items, reserved_bytes, tokens.bucket_id, hash, replaced_by
  FROM tokens LEFT JOIN token_limits ON token_limits.id = limited_by ORDER BY number`

export const listTransferredTokens = (): Query<TransferredToken[]> => all(readTransferredToken, tokenRows)

/** Their numbers are generated in this order. */
export function* insertTokens(tokens: readonly TransferredToken[]): Work<void> {
  for (const token of tokens) {
    const {
      id,
      bucketId,
      name,
      hash,
      scopes,
      createdAt,
      expiresAt,
      lastUsedAt,
      revokedAt,
      note,
      limits,
      replacedBy,
    } = token
    const limitedBy = limits?.id ?? null
    if (limits !== null && bucketId !== null) yield* transferLimits(bucketId, limits)
    yield* write(
      `INSERT INTO tokens (id, bucket_id, name, hash, scopes, created_at, expires_at, last_used_at, revoked_at, note, limited_by, replaced_by)
      VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
      ON CONFLICT (id) DO UPDATE SET expires_at = excluded.expires_at, last_used_at = excluded.last_used_at,
        revoked_at = excluded.revoked_at, replaced_by = excluded.replaced_by`,
      ...[id, bucketId, name, hash, scopes.join(' '), createdAt, expiresAt, lastUsedAt, revokedAt],
      ...[note, limitedBy, replacedBy],
    )
  }
}
