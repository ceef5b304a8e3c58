import { bucketDeleted, tokenRevoked } from '../../../core/faults.ts'
import { type LimitUse, limitsObject, parseStoredLimits, type TokenLimits } from '../../../core/quotas.ts'
import {
  type Actor,
  isScope,
  isServiceScope,
  type Scope,
  type ServiceScope,
} from '../../../core/token-rules.ts'
import type { AuditEvent } from '../audit/audit-events.ts'
import {
  createBucket,
  expiredColumn,
  findBucket,
  findLiveBucket,
  isNotDeleted,
  picturesColumn,
  readRemoval,
  readTexts,
} from '../buckets.ts'
import { auditedWritesOf, ofBucket, ofBucketNamed, writesOf } from '../declarations.ts'
import type { BucketId, BucketSettings, Grant, GrantedLimits, TokenId } from '../records.ts'
import {
  all,
  bucketIdOf,
  bucketIdOrNull,
  type EngineName,
  eachEngine,
  first,
  integer,
  integerOrNull,
  type Query,
  type Row,
  record,
  selectColumns,
  text,
  textOrNull,
  tokenIdOf,
  type Work,
  write,
} from '../statements.ts'
import { insertLimits, readLimitRow } from './token-limits.ts'

/** A token, without its hash; times are milliseconds since 1970. */
export interface TokenRecord {
  readonly id: TokenId
  /** Null for a service token. */
  readonly bucket: string | null
  readonly bucketId: BucketId | null
  readonly name: string
  readonly scopes: readonly ServiceScope[]
  readonly createdAt: number
  readonly expiresAt: number | null
  readonly lastUsedAt: number | null
  readonly revokedAt: number | null
  readonly note: string | null
  /** Null for no limits. */
  readonly limits: (GrantedLimits & LimitUse) | null
}

/** What differs for every new token. */
export interface NewTokenSecret {
  readonly id: TokenId
  /** SHA-256 of the token, 32 bytes. */
  readonly hash: Uint8Array
  readonly createdAt: number
}

/** A new token. */
interface AnyNewToken extends NewTokenSecret {
  readonly name: string
  readonly expiresAt: number | null
  /** A text for those who use the token. Left out or null for none. */
  readonly note?: string | null
}

/** A new service token. */
export interface NewServiceToken extends AnyNewToken {
  readonly scopes: readonly ServiceScope[]
}

/** A new token of a bucket that exists. */
export interface GrantedToken extends AnyNewToken {
  readonly scopes: readonly Scope[]
  /** Left out or null for no limits. */
  readonly limits?: TokenLimits | null
}

export interface NewToken extends GrantedToken {
  /** The bucket's name; the bucket is created if it does not exist. */
  readonly bucket: string
}

/** A token that replaces another one, with its name, note, scopes and limits. */
interface TokenSuccessor extends NewTokenSecret {
  readonly expiresAt: number | null
  /** The replaced token. */
  readonly replaces: TokenId
  /** The replaced token expires at this time at the latest. */
  readonly replacedUntil: number
}

/** Reads of which engines have their own version. */
export interface TokenReads {
  /** The current state of the token and its bucket; null if no token has this SHA-256. Reflects every write that was committed before the call. */
  findGrant(tokenHash: Uint8Array): Grant | null
}

const scopeSets = new Map<string, ReadonlySet<Scope>>()

/** Parses stored scopes of a bucket, each distinct text once. Unknown names grant nothing. */
function scopesOf(stored: string): ReadonlySet<Scope> {
  let set = scopeSets.get(stored)
  if (!set) {
    set = new Set(stored.split(' ').filter(isScope))
    scopeSets.set(stored, set)
  }
  return set
}

/** Parses stored scopes of a service token. */
export const serviceScopesOf = (stored: string): readonly ServiceScope[] =>
  stored.split(' ').filter(isServiceScope)

/** Of a bucket: 0 if it is not private, 1 if it is, 2 if its lists also have signed URLs; 4 if it has public keys, and 8 if it stores files from URLs. */
const privacyColumn = 'private + (private & signed_pages) + 4 * public_keys + 8 * url_uploads'

const ofToken = {
  ...{ tokenId: 'tokens.id', bucketId: 'buckets.id', scopes: 'scopes', expiresAt: 'expires_at' },
  ...{ revokedAt: 'revoked_at', lastUsedAt: 'last_used_at', limitsId: 'limited_by' },
  limits: '(SELECT limits FROM token_limits WHERE token_limits.id = limited_by)',
}

/** The columns of a token and its bucket that `readGrant` reads; `now` is a parameter. */
const granted = (engine: EngineName, now: string, token = ofToken) =>
  selectColumns({
    ...token,
    ...{ revision: 'revision', total: 'total', privacy: privacyColumn, removal: 'remove_metadata' },
    ...{ maxFileSize: 'max_file_size', types: 'types', pictures: picturesColumn },
    ...{ nextExpiry: 'next_expiry', itemDays: 'item_days', expired: expiredColumn(engine, now) },
  })
export const grantColumns = (engine: EngineName, now: string): string => granted(engine, now).text
/** The places of `grantColumns`. */
export const { at: grantPlaces } = granted('sqlite', '')
const at = grantPlaces

/** Reads `grantColumns`. */
export function readGrant(row: Row): Grant {
  const privacy = integer(row, at.privacy)
  const limits =
    row[at.limitsId] === null
      ? null
      : { id: tokenIdOf(row, at.limitsId), ...parseStoredLimits(text(row, at.limits)) }
  return {
    tokenId: tokenIdOf(row, at.tokenId),
    bucketId: bucketIdOf(row, at.bucketId),
    scopes: scopesOf(text(row, at.scopes)),
    expiresAt: integerOrNull(row, at.expiresAt),
    revokedAt: integerOrNull(row, at.revokedAt),
    lastUsedAt: integerOrNull(row, at.lastUsedAt),
    subject: null,
    revision: integer(row, at.revision),
    expired: integer(row, at.expired),
    total: integer(row, at.total) - integer(row, at.expired),
    isPrivate: (privacy & 3) > 0,
    signsPages: (privacy & 3) === 2,
    publicKeys: (privacy & 4) > 0,
    urlUploads: (privacy & 8) > 0,
    pictures: textOrNull(row, at.pictures),
    removesMetadata: readRemoval(row, at.removal),
    fileLimits:
      row[at.maxFileSize] === null && row[at.types] === null
        ? null
        : { maxFileSize: integerOrNull(row, at.maxFileSize), types: readTexts(row, at.types) },
    nextExpiry: integerOrNull(row, at.nextExpiry),
    itemDays: limits?.itemDays ?? integerOrNull(row, at.itemDays),
    limits,
  }
}

const ofNewUser: typeof ofToken = {
  ...{ tokenId: '$3::text', bucketId: 'id', scopes: "''", expiresAt: 'NULL' },
  ...{ revokedAt: 'NULL', lastUsedAt: 'NULL', limitsId: 'NULL', limits: 'NULL' },
}
const newUserRow = eachEngine(
  (engine) =>
    `SELECT ${granted(engine, '$2', ofNewUser).text} FROM buckets WHERE name = $1 AND id > 0 AND ${isNotDeleted}`,
)

/**
 * Reads token, bucket's name, name, scopes, creation, expiry, last use, revocation, note, of its limits the id, the text and the counters, and the
 * bucket's id.
 */
export const readToken = (row: Row): TokenRecord => ({
  id: tokenIdOf(row, 0),
  bucket: textOrNull(row, 1),
  bucketId: bucketIdOrNull(row, 15),
  name: text(row, 2),
  scopes: row[15] === null ? serviceScopesOf(text(row, 3)) : [...scopesOf(text(row, 3))],
  createdAt: integer(row, 4),
  expiresAt: integerOrNull(row, 5),
  lastUsedAt: integerOrNull(row, 6),
  revokedAt: integerOrNull(row, 7),
  note: textOrNull(row, 8),
  limits: row[9] === null ? null : { id: tokenIdOf(row, 9), ...readLimitRow(row, 10) },
})

/** What a user with this id has who has no row yet, in a bucket: as findGrant, without scopes. Null if there is no such bucket. */
export const newUserGrant = (bucket: string, id: TokenId): Query<Grant | null> =>
  first(readGrant, newUserRow, ...[bucket, Date.now(), id])

const tokenRows = `SELECT tokens.id, buckets.name, tokens.name, scopes, tokens.created_at, expires_at,
  last_used_at, revoked_at, note, token_limits.id, limits, token_limits.items, token_limits.bytes, token_limits.reserved_items,
  token_limits.reserved_bytes, tokens.bucket_id
  FROM tokens LEFT JOIN buckets ON buckets.id = tokens.bucket_id LEFT JOIN token_limits ON token_limits.id = limited_by`

export const findToken = (id: TokenId): Query<TokenRecord | null> =>
  first(readToken, `${tokenRows} WHERE tokens.id = $1`, id)

/** Tokens of the bucket in the order of their creation, from that after `after` on; null begins with the first. */
export const tokensAfter = (bucketId: BucketId, after: TokenId | null, limit: number): Query<TokenRecord[]> =>
  all(
    readToken,
    `${tokenRows} WHERE tokens.bucket_id = $1
    AND tokens.number > coalesce((SELECT number FROM tokens WHERE id = $2), 0) ORDER BY tokens.number LIMIT $3`,
    ...[bucketId, after, limit],
  )

/** All tokens, also those of the service, or those of one bucket, oldest first; without their hashes. */
export function listTokens(bucket?: string): Query<TokenRecord[]> {
  const order = 'ORDER BY tokens.created_at, tokens.number'
  return bucket === undefined
    ? all(readToken, `${tokenRows} WHERE tokens.bucket_id IS NULL OR ${isNotDeleted} ${order}`)
    : all(readToken, `${tokenRows} WHERE buckets.name = $1 ${order}`, bucket)
}

const insertion = `INSERT INTO tokens (id, bucket_id, name, hash, scopes, created_at, expires_at, note, limited_by)
  VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`

const insertedValues = (bucketId: BucketId | null, token: NewServiceToken & Pick<GrantedToken, 'limits'>) => {
  const { id, name, hash, scopes, createdAt, expiresAt, note = null, limits = null } = token
  const limitedBy = limits === null ? null : id
  return [id, bucketId, name, hash, scopes.join(' '), createdAt, expiresAt, note, limitedBy]
}

/** Adds a token of a bucket, which the transaction has locked. */
export function* insertToken(
  bucketId: BucketId,
  token: GrantedToken,
  by: Actor | undefined,
): Work<undefined> {
  yield* write(insertion, ...insertedValues(bucketId, token))
  const { id, limits = null } = token
  if (limits !== null) yield* insertLimits(id, bucketId, limits)
  yield* record(by, (by) => tokenEvent(bucketId, token, by))
}

/** Creates a service token. */
export function* addServiceToken(token: NewServiceToken, by?: Actor): Work<undefined> {
  yield* write(insertion, ...insertedValues(null, token))
  yield* record(by, (by) => tokenEvent(null, token, by))
}

/** Creates the token, and its bucket if it does not exist. Returns whether it created the bucket. */
export function* addToken(token: NewToken, by?: Actor): Work<boolean> {
  const isNew = yield* createBucket(token.bucket, {}, token.createdAt, by)
  yield* insertToken(yield* holdBucket(token.bucket), token, by)
  return isNew
}

/** Creates the bucket of the token, and the token; false if the bucket exists. Of several processes, one succeeds. */
export function* createBucketWithToken(token: NewToken, by?: Actor): Work<boolean> {
  const isNew = yield* createBucket(token.bucket, {}, token.createdAt, by)
  if (isNew) yield* insertToken(yield* holdBucket(token.bucket), token, by)
  return isNew
}

/**
 * Creates the row of a user of an issuer, unless there is one with its hash. If the bucket does not exist,
 * creates it with the settings `newBucket`, or returns false if they are null.
 */
export function* addUser(
  user: NewToken,
  newBucket: Partial<BucketSettings> | null,
  by?: Actor,
): Work<boolean> {
  const { bucket: name, createdAt } = user
  if (newBucket !== null) yield* createBucket(name, newBucket, createdAt, by)
  const bucketId = yield* findBucket(name)
  if (bucketId === null) return false
  // Waits for a transaction that is adding the row.
  yield* write(`${insertion} ON CONFLICT (hash) DO NOTHING`, ...insertedValues(bucketId, user))
  return true
}

/** Returns the id of the bucket, which cannot be deleted until the end of the transaction. */
function* holdBucket(name: string): Work<BucketId> {
  const id = yield* findBucket(name)
  if (id === null) throw new Error('the bucket of a new token does not exist')
  return id
}

/**
 * Creates a token of the bucket. Throws Fault `token-revoked` if the token `grantor` was revoked, and `bucket-unknown` if the bucket was deleted. The
 * grantor is a token of the bucket or of the service.
 */
export function* grantToken(
  bucketId: BucketId,
  grantor: TokenId,
  token: GrantedToken,
  by?: Actor,
): Work<undefined> {
  yield* requireGrantor(bucketId, grantor, token.createdAt)
  yield* insertToken(bucketId, token, by)
}

/**
 * Creates the successor of a token of the bucket. False if the bucket has no such token that is valid when the successor is
 * created and has no successor yet. Throws Fault `token-revoked` as grantToken. The grantor is null for the operator.
 */
export function* rotateToken(
  bucketId: BucketId,
  grantor: TokenId | null,
  successor: TokenSuccessor,
  by?: Actor,
): Work<boolean> {
  if (grantor !== null) yield* requireGrantor(bucketId, grantor, successor.createdAt)
  return yield* replaceToken(bucketId, successor, by)
}

/** Creates the successor of a service token. False as rotateToken. */
export const rotateServiceToken = (successor: TokenSuccessor, by?: Actor): Work<boolean> =>
  replaceToken(null, successor, by)

/** Creates the successor of a token of the bucket, or of the service if it is null. */
function* replaceToken(bucketId: BucketId | null, successor: TokenSuccessor, by?: Actor): Work<boolean> {
  const { id, hash, createdAt, expiresAt, replaces, replacedUntil } = successor
  // The lock makes a concurrent rotation wait, so that it reads the successor that the first one sets.
  const added = yield* write(
    `WITH replaced AS MATERIALIZED (SELECT * FROM tokens WHERE id = $5 AND bucket_id IS NOT DISTINCT FROM $6::int8 FOR UPDATE)
    INSERT INTO tokens (id, bucket_id, name, hash, scopes, created_at, expires_at, note, limited_by)
    SELECT $1, bucket_id, name, $2, scopes, $3, $4, note, limited_by FROM replaced
    WHERE revoked_at IS NULL AND replaced_by IS NULL AND coalesce(expires_at > $3, true)`,
    ...[id, hash, createdAt, expiresAt, replaces, bucketId],
  )
  if (added !== 1) return false
  yield* write(
    `UPDATE tokens SET expires_at = CASE WHEN expires_at < $1 THEN expires_at ELSE $1 END, replaced_by = $3
    WHERE id = $2`,
    ...[replacedUntil, replaces, id],
  )
  yield* record(by, (by) => rotationEvent(bucketId, successor, by))
  return true
}

/** False if there is no such token. A second revocation keeps the first time. */
export function* revokeToken(id: TokenId, at: number, by?: Actor): Work<boolean> {
  const token = yield* first(
    (row) => ({ bucketId: bucketIdOrNull(row, 0), name: text(row, 1), revokedAt: integerOrNull(row, 2) }),
    'SELECT bucket_id, name, revoked_at FROM tokens WHERE id = $1 FOR UPDATE',
    id,
  )
  if (token === null) return false
  const { revokedAt, ...revoked } = token
  if (revokedAt !== null) return true
  yield* write('UPDATE tokens SET revoked_at = $1 WHERE id = $2', at, id)
  yield* record(by, (by) => ({ action: 'token-revoke', by, target: id, ...revoked }))
  return true
}

/** Undoes the revocation of a token. False if there is no such token. */
export function* restoreToken(id: TokenId, by?: Actor): Work<boolean> {
  const token = yield* first(
    (row) => ({ bucketId: bucketIdOrNull(row, 0), name: text(row, 1), revokedAt: integerOrNull(row, 2) }),
    'SELECT bucket_id, name, revoked_at FROM tokens WHERE id = $1 FOR UPDATE',
    id,
  )
  if (token === null) return false
  const { revokedAt, ...restored } = token
  if (revokedAt === null) return true
  yield* write('UPDATE tokens SET revoked_at = NULL WHERE id = $1', id)
  yield* record(by, (by) => ({ action: 'token-restore', by, target: id, ...restored }))
  return true
}

/** Records a use; the caller limits how often. */
export function* touchToken(id: TokenId, at: number): Work<undefined> {
  yield* write('UPDATE tokens SET last_used_at = $1 WHERE id = $2', at, id)
}

/** Throws Fault `token-revoked`. The lock makes a revocation at the same time wait for the new token. */
export function* requireGrantor(bucketId: BucketId, grantor: TokenId, now: number): Work<void> {
  const grant = yield* first(
    (row) => (row[0] === null ? 'service' : 'bucket'),
    `SELECT bucket_id FROM tokens WHERE id = $1 AND coalesce(bucket_id = $2, true) AND revoked_at IS NULL
      AND coalesce(expires_at > $3, true) FOR UPDATE`,
    ...[grantor, bucketId, now],
  )
  if (grant === null) throw tokenRevoked()
  // The deletion of the bucket has revoked its tokens, but not those of the service.
  if (grant === 'service' && (yield* findLiveBucket(bucketId)) === null) throw bucketDeleted()
}

const tokenEvent = (
  bucketId: BucketId | null,
  { id, name, scopes, expiresAt, limits = null }: NewServiceToken & Pick<GrantedToken, 'limits'>,
  by: Actor,
): AuditEvent => ({
  action: 'token-create',
  by,
  bucketId,
  target: id,
  name,
  detail: {
    ...{ scopes, expires_at: timeOf(expiresAt) },
    ...(limits === null ? {} : auditedLimits(limits)),
  },
})

/** Facts of an event are texts, numbers and lists of texts. */
const auditedLimits = (limits: TokenLimits) => {
  const { labels, ...others } = limitsObject(limits)
  return { ...others, labels: labels && Object.entries(labels).map(([key, value]) => `${key}=${value}`) }
}

/** The target is the new token. */
const rotationEvent = (
  bucketId: BucketId | null,
  { id, expiresAt, replaces, replacedUntil }: TokenSuccessor,
  by: Actor,
): AuditEvent => ({
  action: 'token-rotate',
  by,
  bucketId,
  target: id,
  detail: { replaces, replaced_until: timeOf(replacedUntil), expires_at: timeOf(expiresAt) },
})

const timeOf = (milliseconds: number | null): string | null =>
  milliseconds === null ? null : new Date(milliseconds).toISOString()

export const reads = { newUserGrant, findToken, tokensAfter, listTokens }

export const writes = {
  ...auditedWritesOf({ addToken }, { locks: ({ bucket }) => ofBucketNamed(bucket) }),
  ...auditedWritesOf({ createBucketWithToken, addUser, revokeToken, restoreToken }),
  ...auditedWritesOf({ addServiceToken, rotateServiceToken }),
  ...auditedWritesOf({ grantToken, rotateToken }, { locks: ofBucket }),
  ...writesOf({ touchToken }),
}
