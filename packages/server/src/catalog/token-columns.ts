import { isScope, type Scope } from '../core/scopes.ts'
import { expiredColumn } from './item-columns.ts'
import type { BucketId, Grant, TokenId } from './records.ts'
import { integer, integerOrNull, type Row, text } from './rows.ts'
import type { TokenRecord } from './token-records.ts'

const scopeSets = new Map<string, ReadonlySet<Scope>>()

/** Parses stored scopes, each distinct text once. Unknown names grant nothing. */
function scopesOf(stored: string): ReadonlySet<Scope> {
  let set = scopeSets.get(stored)
  if (!set) {
    set = new Set(stored.split(' ').filter(isScope))
    scopeSets.set(stored, set)
  }
  return set
}

/** Of a bucket: 0 if it is not private, 1 if it is, 2 if its lists also have signed URLs. */
const privacyColumn = 'private + (private & signed_pages)'

/** The columns of `buckets` that `readGrant` reads after those of the token; `now` is a parameter. */
export const grantedColumns = (now: string): string =>
  `revision, total, ${privacyColumn}, remove_metadata, next_expiry, item_days, ${expiredColumn(now)}`

/**
 * Reads token, bucket, scopes, expiry, revocation, last use, revision, total, `privacyColumn`, 1 if the bucket removes metadata, the next
 * expiry, the lifetime of items, and `expiredColumn`.
 */
export const readGrant = (row: Row): Grant => ({
  tokenId: text(row, 0) as TokenId,
  bucketId: integer(row, 1) as BucketId,
  scopes: scopesOf(text(row, 2)),
  expiresAt: integerOrNull(row, 3),
  revokedAt: integerOrNull(row, 4),
  lastUsedAt: integerOrNull(row, 5),
  subject: null,
  revision: integer(row, 6),
  expired: integer(row, 12),
  total: integer(row, 7) - integer(row, 12),
  isPrivate: integer(row, 8) > 0,
  signsPages: integer(row, 8) === 2,
  removesMetadata: integer(row, 9) === 1,
  nextExpiry: integerOrNull(row, 10),
  itemDays: integerOrNull(row, 11),
})

/** Reads token, bucket's name, name, scopes, creation, expiry, last use and revocation. */
export const readToken = (row: Row): TokenRecord => ({
  id: text(row, 0) as TokenId,
  bucket: text(row, 1),
  name: text(row, 2),
  scopes: [...scopesOf(text(row, 3))],
  createdAt: integer(row, 4),
  expiresAt: integerOrNull(row, 5),
  lastUsedAt: integerOrNull(row, 6),
  revokedAt: integerOrNull(row, 7),
})
