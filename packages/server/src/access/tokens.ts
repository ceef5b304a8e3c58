import { bucketDeleted, Fault } from '../core/faults.ts'
import { randomBase32 } from '../core/ids.ts'
import type { TokenListQuery } from '../core/queries.ts'
import { type Actor, hashToken, newToken, requireGrantable, type Scope } from '../core/tokens.ts'
import type { Catalog } from '../storage/catalog/catalog.ts'
import type { Grant, TokenId } from '../storage/catalog/records.ts'
import type { GrantedToken, NewToken, NewTokenSecret, TokenRecord } from '../storage/catalog/tokens.ts'

/** A token as the API represents it to its owner (docs/interface.md T1). */
export interface TokenObject {
  readonly id: string
  readonly name: string
  readonly bucket: string
  readonly scopes: readonly Scope[]
  /** RFC 3339, UTC. */
  readonly created_at: string
  readonly expires_at: string | null
}

/** A token as the API represents it to those who manage the tokens of a bucket (docs/interface.md T4). */
interface ManagedTokenObject extends TokenObject {
  /** RFC 3339, UTC. */
  readonly last_used_at: string | null
  readonly revoked_at: string | null
}

/** A new token, with the token itself (docs/interface.md T6). */
export interface CreatedToken extends TokenObject {
  readonly token: string
}

const tokenObject = ({ id, name, bucket, scopes, createdAt, expiresAt }: TokenRecord): TokenObject => ({
  id,
  name,
  bucket,
  scopes,
  created_at: new Date(createdAt).toISOString(),
  expires_at: timeOrNull(expiresAt),
})

const managedTokenObject = (token: TokenRecord): ManagedTokenObject => ({
  ...tokenObject(token),
  last_used_at: timeOrNull(token.lastUsedAt),
  revoked_at: timeOrNull(token.revokedAt),
})

/** Reads the row of a token that has been created. */
async function createdToken(
  catalog: Pick<Catalog, 'token'>,
  id: TokenId,
  token: string,
): Promise<CreatedToken> {
  const record = await catalog.token(id)
  if (record === null) throw bucketDeleted()
  return { ...tokenObject(record), token }
}

const timeOrNull = (time: number | null): string | null =>
  time === null ? null : new Date(time).toISOString()

const newTokenId = (): TokenId => `tok_${randomBase32(12)}` as TokenId

/** For the row of a user of the issuer, which is among the tokens. */
export const newUserId = (): TokenId => `usr_${randomBase32(12)}` as TokenId

const isTokenId = (text: string): text is TokenId => /^(?:tok|usr)_[0-9a-z]{12}$/.test(text)

const isUserId = (id: TokenId): boolean => id.startsWith('usr_')

/** Generates a token and its id. Only the hash of the token is stored (docs/interface.md A8). `now` is milliseconds since 1970. */
function generateToken(now: number): { readonly token: string; readonly row: NewTokenSecret } {
  const token = newToken()
  return { token, row: { id: newTokenId(), hash: hashToken(token), createdAt: now } }
}

type TokenRequest = Pick<NewToken, 'bucket' | 'name' | 'scopes' | 'expiresAt'> & {
  /** Milliseconds since 1970, as `expiresAt`. */
  readonly now: number
}

interface IssuedToken {
  readonly token: string
  readonly id: TokenId
}

/** Creates a token, and its bucket if it does not exist. Only the hash of the token is stored (docs/interface.md A8). */
export async function issueToken(
  catalog: Pick<Catalog, 'addToken'>,
  request: TokenRequest,
): Promise<IssuedToken & { readonly isNewBucket: boolean }> {
  const { token, row } = createToken(request)
  const isNewBucket = await catalog.addToken(row)
  return { token, id: row.id, isNewBucket }
}

/** Creates a bucket with a token. Null if the bucket exists: of several processes, one gets the token. */
export async function issueTokenOfNewBucket(
  catalog: Pick<Catalog, 'createBucketWithToken'>,
  request: TokenRequest,
): Promise<IssuedToken | null> {
  const { token, row } = createToken(request)
  return (await catalog.createBucketWithToken(row)) ? { token, id: row.id } : null
}

function createToken({ now, ...request }: TokenRequest): { token: string; row: NewToken } {
  const { token, row } = generateToken(now)
  return { token, row: { ...request, ...row } }
}

/** Finds a token of the caller's bucket. Throws Fault `managed-token-unknown`, also for tokens of other buckets (docs/interface.md A6). */
async function findManagedToken(
  catalog: Pick<Catalog, 'token'>,
  grant: Pick<Grant, 'tokenId'>,
  id: string,
): Promise<TokenRecord> {
  const unknown = new Fault('managed-token-unknown', 'The bucket has no token with this id.')
  if (!isTokenId(id)) throw unknown
  const [own, token] = await Promise.all([catalog.token(grant.tokenId), catalog.token(id)])
  if (token === null || token.bucket !== own?.bucket) throw unknown
  return token
}

/**
 * Reads the token of this grant. Scopes and expiry are those of the request: a user’s row has none (docs/interface.md J6). Throws
 * Fault `token-unknown` if it no longer exists.
 */
export async function describeToken(
  catalog: Pick<Catalog, 'token'>,
  grant: Pick<Grant, 'tokenId' | 'scopes' | 'expiresAt'>,
): Promise<TokenObject> {
  const token = await catalog.token(grant.tokenId)
  if (token === null) throw new Fault('token-unknown', 'This service has not issued this token.')
  return tokenObject({ ...token, scopes: [...grant.scopes], expiresAt: grant.expiresAt })
}

export interface TokenList {
  readonly data: readonly ManagedTokenObject[]
  /** Null if no tokens follow. */
  readonly next_cursor: string | null
}

/** Lists tokens of the caller's bucket, oldest first (docs/interface.md T4). Throws Fault `cursor-malformed`. */
export async function listTokens(
  catalog: Pick<Catalog, 'token' | 'tokensAfter'>,
  grant: Pick<Grant, 'tokenId' | 'bucketId'>,
  { after, limit }: TokenListQuery,
): Promise<TokenList> {
  const previous = after === null ? null : await findPrevious(catalog, grant, after)
  // One more than the limit shows whether further tokens follow.
  const tokens = await catalog.tokensAfter(grant.bucketId, previous, limit + 1)
  const listed = tokens.slice(0, limit)
  return {
    data: listed.map(managedTokenObject),
    next_cursor: tokens.length > limit ? (listed.at(-1)?.id ?? null) : null,
  }
}

async function findPrevious(
  catalog: Pick<Catalog, 'token'>,
  grant: Pick<Grant, 'tokenId'>,
  after: string,
): Promise<TokenId> {
  try {
    return (await findManagedToken(catalog, grant, after)).id
  } catch (error) {
    if (!(error instanceof Fault)) throw error
    throw new Fault('cursor-malformed', 'This is not a cursor of this list.', { cause: error })
  }
}

/**
 * Creates a token of the caller's bucket (docs/interface.md T6). Throws Fault `scope-missing` for scopes that the caller lacks, and
 * `token-revoked` if the caller's token has been revoked in the meantime.
 */
export async function grantToken(
  catalog: Pick<Catalog, 'grantToken' | 'token'>,
  grant: Pick<Grant, 'tokenId' | 'bucketId' | 'scopes'>,
  request: Pick<GrantedToken, 'name' | 'scopes' | 'expiresAt'>,
  now: number,
  by: Actor,
): Promise<CreatedToken> {
  requireGrantable(grant, request.scopes)
  const { token, row } = generateToken(now)
  await catalog.grantToken(grant.bucketId, grant.tokenId, { ...request, ...row }, by)
  return createdToken(catalog, row.id, token)
}

interface Rotation {
  /** Milliseconds for which the replaced token remains valid, unless it expires earlier. */
  readonly overlap: number
  /** When the successor expires: milliseconds since 1970, or null for never. */
  readonly expiresAt: number | null
}

/**
 * Creates the successor of a token, with its name and its scopes (docs/interface.md T8). Throws Fault `managed-token-unknown`,
 * `managed-token-inactive`, `scope-missing` and `token-revoked`.
 */
export async function rotateToken(
  catalog: Pick<Catalog, 'token' | 'rotateToken'>,
  grant: Pick<Grant, 'tokenId' | 'bucketId' | 'scopes'>,
  id: string,
  { overlap, expiresAt }: Rotation,
  now: number,
  by: Actor,
): Promise<CreatedToken> {
  const replaced = await findManagedToken(catalog, grant, id)
  if (isUserId(replaced.id))
    throw new Fault(
      'managed-token-inactive',
      'This is a user of the issuer, which has no token to be replaced.',
    )
  requireGrantable(grant, replaced.scopes)
  const { token, row } = generateToken(now)
  const successor = { ...row, expiresAt, replaces: replaced.id, replacedUntil: now + overlap }
  const isRotated = await catalog.rotateToken(grant.bucketId, grant.tokenId, successor, by)
  if (!isRotated)
    throw new Fault(
      'managed-token-inactive',
      'The token has expired or has been revoked, so it has no successor.',
    )
  return createdToken(catalog, row.id, token)
}

/** Revokes a token of the caller's bucket (docs/interface.md T7). Throws Fault `managed-token-unknown`. `now` is milliseconds since 1970. */
export async function revokeToken(
  catalog: Pick<Catalog, 'token' | 'revokeToken'>,
  grant: Pick<Grant, 'tokenId'>,
  id: string,
  now: number,
  by: Actor,
): Promise<void> {
  const token = await findManagedToken(catalog, grant, id)
  await catalog.revokeToken(token.id, now, by)
}
