import type { ServiceScope } from '../../../core/token-rules.ts'
import { isNotDeleted } from '../buckets.ts'
import type { BucketId, Grant, TokenId } from '../records.ts'
import {
  bucketIdOrNull,
  eachEngine,
  first,
  integerOrNull,
  type Query,
  type Row,
  text,
  tokenIdOf,
} from '../statements.ts'
import { grantPlaces as at, grantColumns, readGrant, serviceScopesOf } from './tokens.ts'

// Service tokens are rows of `tokens` without a bucket, so that what lists, revokes, restores, transfers and audits tokens has them too. The
// statement that verifies the tokens of buckets joins the bucket and so never finds one; this one finds no others. The text of a token says which of both
// is needed (isServiceToken), so a token of a bucket costs nothing more.

/** What a service token grants; times are milliseconds since 1970. */
export interface ServiceGrant {
  readonly tokenId: TokenId
  readonly scopes: ReadonlySet<ServiceScope>
  readonly expiresAt: number | null
  readonly revokedAt: number | null
  readonly lastUsedAt: number | null
  /** What it grants in the bucket that was asked for; null if there is no such bucket. */
  readonly ofBucket: Grant | null
}

const serviceGrantRow = eachEngine(
  (engine) => `SELECT ${grantColumns(engine, '$2')}
    FROM tokens LEFT JOIN buckets ON buckets.name = $3 AND buckets.id > 0 AND ${isNotDeleted}
    WHERE hash = $1 AND bucket_id IS NULL${engine === 'postgres' ? ' AND require_primary()' : ''}`,
)

const readServiceGrant = (row: Row): ServiceGrant => ({
  tokenId: tokenIdOf(row, at.tokenId),
  scopes: new Set(serviceScopesOf(text(row, at.scopes))),
  expiresAt: integerOrNull(row, at.expiresAt),
  revokedAt: integerOrNull(row, at.revokedAt),
  lastUsedAt: integerOrNull(row, at.lastUsedAt),
  ofBucket: row[at.bucketId] === null ? null : readGrant(row),
})

/** The current state of a service token, and of the bucket with this name, if one is given. Null if no service token has this SHA-256. */
export const findServiceGrant = (tokenHash: Uint8Array, bucket: string | null): Query<ServiceGrant | null> =>
  first(readServiceGrant, serviceGrantRow, ...[tokenHash, Date.now(), bucket])

/** A token that was found by its id, with what it grants in the bucket that was asked for: null too if it is a token of another bucket. */
export interface TokenGrant extends ServiceGrant {
  /** Null for a service token. */
  readonly bucketId: BucketId | null
}

const tokenGrantRow = eachEngine(
  (engine) => `SELECT ${grantColumns(engine, '$2')}, bucket_id FROM tokens LEFT JOIN buckets
    ON buckets.name = $3 AND buckets.id > 0 AND ${isNotDeleted} AND coalesce(bucket_id, buckets.id) = buckets.id
    WHERE tokens.id = $1${engine === 'postgres' ? ' AND require_primary()' : ''}`,
)

const readTokenGrant = (row: Row): TokenGrant => ({
  ...readServiceGrant(row),
  bucketId: bucketIdOrNull(row, row.length - 1),
})

/** The current state of the token with this id, and of the bucket with this name, if one is given. Null if there is no such token. */
export const findTokenGrant = (
  id: TokenId,
  bucket: string | null,
  now = Date.now(),
): Query<TokenGrant | null> => first(readTokenGrant, tokenGrantRow, ...[id, now, bucket])

export const reads = { findServiceGrant, findTokenGrant }
