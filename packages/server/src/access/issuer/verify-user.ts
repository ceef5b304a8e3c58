import { hash } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import type { Catalog } from '../../catalog/catalog.ts'
import type { Grant, TokenId } from '../../catalog/records.ts'
import { service } from '../../core/actor.ts'
import { Fault } from '../../core/fault.ts'
import type { IssuerSettings } from '../../core/issuer-settings.ts'
import { resolvesWithin } from '../../core/resolves-within.ts'
import { type RemoveExpired, removeExpiredOf, type VerifiedGrant } from '../expired-items.ts'
import { recordUseOperation } from '../record-use.ts'
import { newUserId } from '../token-id.ts'
import { clockSkew, type VerifiedUser } from './verify-jwt.ts'

/** Verified tokens in memory; a token that is evicted is verified again. */
const maxVerified = 10_000

/** A token is verified again after this time, because the issuer may have withdrawn its key. Milliseconds. */
const verifiedFor = 60_000

/** A request that reads waits this long for the row of a new user. Milliseconds. */
const firstUseTimeout = 250

interface Verified extends VerifiedUser {
  readonly bucket: string
  /** Identifies the user's row in the catalog. */
  readonly hash: Uint8Array
  readonly verifiedAt: number
}

/**
 * Returns what a token of the issuer grants (docs/interface.md, Tokens of an issuer). The result of the verification is cached for a
 * minute; the bucket is read from the catalog each time. A user has a row in the table of tokens, so that requests, uses and revocations are
 * handled as for tokens. Throws Fault as verifyJwt, `token-revoked` and `bucket-unknown`.
 */
export function verifyUserOperation(
  settings: Pick<IssuerSettings, 'issuer' | 'newBuckets'>,
  parts: {
    readonly verifyJwt: (token: string) => Promise<VerifiedUser>
    readonly catalog: Pick<Catalog, 'findGrant' | 'newUserGrant' | 'bucketNamed' | 'addUser' | 'touchToken'>
    readonly removeExpired: RemoveExpired
    readonly now: () => number
    readonly onTouchFailure: (error: unknown) => void
  },
): (token: string) => Promise<VerifiedGrant> {
  const { issuer, newBuckets } = settings
  const { verifyJwt, catalog, removeExpired, now } = parts
  const recordUse = recordUseOperation(parts)
  const verified = new LRUCache<string, Verified>({ max: maxVerified })

  async function verify(token: string, key: string): Promise<Verified> {
    const user = await verifyJwt(token)
    const { subject, bucket } = user
    if (bucket === null)
      throw new Fault('bucket-unknown', 'The token is valid, but its claims name no bucket of this service.')
    const result = { ...user, bucket, hash: hashUser(issuer, subject, bucket), verifiedAt: now() }
    verified.set(key, result)
    return result
  }

  const isFresh = ({ verifiedAt, expiresAt }: Verified, at: number) =>
    Math.abs(at - verifiedAt) < verifiedFor && at < expiresAt + clockSkew

  /** As in the audit log. */
  const subjectOf = (subject: string) => `${issuer}|${subject}`

  /** The first request of a user adds its row, and the bucket where the settings allow it. */
  async function addUser({ subject, bucket, hash }: Verified, id: TokenId): Promise<Grant | null> {
    // A read, because a user without a bucket must not cause a write with each request.
    if (newBuckets === null && (await catalog.bucketNamed(bucket)) === null) return null
    const createdAt = now()
    const user = { id, hash, bucket, name: subject, scopes: [], createdAt, expiresAt: null }
    const by = { ...service, kind: 'client', tokenId: user.id, subject: subjectOf(subject) } as const
    return (await catalog.addUser(user, newBuckets, by)) ? catalog.findGrant(hash) : null
  }

  /** The rows that are being added. */
  const adding = new Map<string, { readonly id: TokenId; readonly added: Promise<Grant | null> }>()

  function addUserOnce(user: Verified) {
    const key = Buffer.from(user.hash).toString('base64')
    const running = adding.get(key)
    if (running !== undefined) return running
    const id = newUserId()
    const added = addUser(user, id).finally(() => adding.delete(key))
    adding.set(key, { id, added })
    return { id, added }
  }

  /** While the catalog cannot be written, a new user can read a bucket that exists. */
  async function findUser(user: Verified): Promise<VerifiedGrant | null> {
    const found = await catalog.findGrant(user.hash)
    if (found !== null) return found
    const { id, added } = addUserOnce(user)
    if (await resolvesWithin(added, firstUseTimeout).catch(() => false)) return added
    const grant = await catalog.newUserGrant(user.bucket, id)
    return grant === null ? added : { ...grant, settle: async () => void (await added) }
  }

  return async (token) => {
    const key = hash('sha256', token, 'base64')
    const known = verified.get(key)
    const user = known && isFresh(known, now()) ? known : await verify(token, key)
    const row = await findUser(user)
    if (row === null)
      throw new Fault('bucket-unknown', 'The token is valid, but this service has no bucket for its user.')
    if (row.revokedAt !== null) throw new Fault('token-revoked', 'The access of this user has been revoked.')
    const at = now()
    recordUse(row, at)
    return {
      ...(row.settle === undefined ? removeExpiredOf(row, removeExpired, at) : row),
      scopes: user.scopes,
      expiresAt: user.expiresAt,
      subject: subjectOf(user.subject),
    }
  }
}

/** Tokens have SHA-256 hashes. Users have SHA-512/256 hashes, so that no token has the hash of a user. */
const hashUser = (issuer: string, subject: string, bucket: string): Uint8Array =>
  hash('sha512-256', JSON.stringify([issuer, subject, bucket]), 'buffer')
