import { hash } from 'node:crypto'
import { errors, type JWTVerifyOptions, type JWTVerifyResult, jwtVerify } from 'jose'
import { LRUCache } from 'lru-cache'
import type { BaseLogger } from 'pino'
import { bucketNameFor } from '../core/bucket-settings.ts'
import { Fault } from '../core/faults.ts'
import { type Claims, type IssuerSettings, readClaim, scopesOfClaim } from '../core/issuer.ts'
import { resolvesWithin } from '../core/tasks.ts'
import { lastTime } from '../core/times.ts'
import { newUserId } from '../core/token-ids.ts'
import { type Scope, service } from '../core/token-rules.ts'
import type { VerifiedGrant } from '../http/authorizer.ts'
import type { Catalog } from '../storage/catalog/catalog.ts'
import type { Grant, TokenId } from '../storage/catalog/records.ts'
import { clientMetadata, IssuerKeys } from './issuer-keys.ts'
import { type RemoveExpired, recordUseOperation, removeExpiredOf } from './token-operations.ts'

/** One line of the log for each reason and minute, so that refused tokens do not fill it. Milliseconds. */
const refusalInterval = 60_000

/** What the service needs of the issuer: the verification of its tokens, and the sign-in at the gallery. Does not wait for the issuer. */
export function openIssuer(
  settings: IssuerSettings,
  parts: {
    readonly catalog: Catalog
    readonly removeExpired: RemoveExpired
    readonly log: Pick<BaseLogger, 'info' | 'warn'>
  },
) {
  const { catalog, removeExpired, log } = parts
  const { issuer, signIn } = settings
  let isAvailable: boolean | null = null
  const keys = new IssuerKeys(settings, {
    now: Date.now,
    onFailure(err) {
      if (isAvailable !== false)
        log.warn(
          { err, issuer },
          'the keys of the issuer cannot be requested; earlier ones remain in use for a day',
        )
      isAvailable = false
    },
    onSuccess() {
      if (isAvailable !== true) log.info({ issuer }, 'received the keys of the issuer')
      isAvailable = true
    },
  })
  void keys.refresh()

  const loggedAt = new Map<string, number>()
  function onRefusal(reason: string): void {
    const at = Date.now()
    if (Math.abs(at - (loggedAt.get(reason) ?? 0)) < refusalInterval) return
    loggedAt.set(reason, at)
    log.warn({ reason }, 'refused a token of the issuer; further ones of this minute are not logged')
  }

  const users = new IssuerUsers(settings, {
    verifyJwt: verifyJwtOperation(settings, { keys, now: Date.now, onRefusal }),
    catalog,
    removeExpired,
    now: Date.now,
    onTouchFailure: (err) => log.warn({ err }, 'the last use of a user was not recorded'),
  })

  return {
    verifyUser: (token: string) => users.verifyUser(token),
    /** Null if the gallery offers no sign-in with the issuer. */
    signIn: signIn && {
      ...signIn,
      metadata() {
        const discovery = keys.discovery()
        return discovery && clientMetadata(issuer, discovery)
      },
    },
  }
}

export type Issuer = ReturnType<typeof openIssuer>

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

interface UserParts {
  readonly verifyJwt: (token: string) => Promise<VerifiedUser>
  readonly catalog: Pick<Catalog, 'findGrant' | 'newUserGrant' | 'findBucketNamed' | 'addUser' | 'touchToken'>
  readonly removeExpired: RemoveExpired
  readonly now: () => number
  readonly onTouchFailure: (error: unknown) => void
}

/** The row of a user that is being added. */
interface AddingUser {
  readonly id: TokenId
  readonly added: Promise<Grant | null>
}

/** The users of the issuer. A user has a row in the table of tokens, so that requests, uses and revocations are handled as for tokens. */
class IssuerUsers {
  readonly #settings: Pick<IssuerSettings, 'issuer' | 'newBuckets'>
  readonly #parts: UserParts
  readonly #recordUse: ReturnType<typeof recordUseOperation>
  /** By the hash of the token. */
  // With `max` it would allocate all places at the start.
  readonly #verified = new LRUCache<string, Verified>({ maxSize: maxVerified, sizeCalculation: () => 1 })
  readonly #adding = new Map<string, AddingUser>()

  constructor(settings: Pick<IssuerSettings, 'issuer' | 'newBuckets'>, parts: UserParts) {
    this.#settings = settings
    this.#parts = parts
    this.#recordUse = recordUseOperation(parts)
  }

  /**
   * Returns what a token of the issuer grants (docs/interface.md, Tokens of an issuer). The result of the verification is cached for a
   * minute; the bucket is read from the catalog each time. Throws Fault as verifyJwt, `token-revoked` and `bucket-missing`.
   */
  async verifyUser(token: string): Promise<VerifiedGrant> {
    const { now, removeExpired } = this.#parts
    const key = hash('sha256', token, 'base64')
    const known = this.#verified.get(key)
    const user = known && isFresh(known, now()) ? known : await this.#verify(token, key)
    const row = await this.#findUser(user)
    if (row === null)
      throw new Fault('bucket-missing', 'The token is valid, but this service has no bucket for its user.')
    if (row.revokedAt !== null) throw new Fault('token-revoked', 'The access of this user has been revoked.')
    const at = now()
    this.#recordUse(row, at)
    return {
      ...(row.earlierWork === undefined ? removeExpiredOf(row, removeExpired, at) : row),
      scopes: user.scopes,
      expiresAt: user.expiresAt,
      subject: this.#subjectOf(user.subject),
    }
  }

  async #verify(token: string, key: string): Promise<Verified> {
    const user = await this.#parts.verifyJwt(token)
    const { subject, bucket } = user
    if (bucket === null)
      throw new Fault('bucket-missing', 'The token is valid, but its claims name no bucket of this service.')
    const userHash = hashUser(this.#settings.issuer, subject, bucket)
    const result = { ...user, bucket, hash: userHash, verifiedAt: this.#parts.now() }
    this.#verified.set(key, result)
    return result
  }

  /** While the catalog cannot be written, a new user can read a bucket that exists. */
  async #findUser(user: Verified): Promise<VerifiedGrant | null> {
    const { catalog } = this.#parts
    const found = await catalog.findGrant(user.hash)
    if (found !== null) return found
    const { id, added } = this.#addUserOnce(user)
    if (await resolvesWithin(added, firstUseTimeout).catch(() => false)) return added
    // Another request may have added the row, with another id, between the read and the start of this addition.
    const since = await catalog.findGrant(user.hash)
    if (since !== null) return since
    const grant = await catalog.newUserGrant(user.bucket, id)
    return grant === null ? added : { ...grant, earlierWork: async () => void (await added) }
  }

  #addUserOnce(user: Verified): AddingUser {
    const key = Buffer.from(user.hash).toString('base64')
    const running = this.#adding.get(key)
    if (running !== undefined) return running
    const id = newUserId()
    const added = this.#addUser(user, id).finally(() => this.#adding.delete(key))
    this.#adding.set(key, { id, added })
    return { id, added }
  }

  /** The first request of a user adds its row, and the bucket where the settings allow it. */
  async #addUser({ subject, bucket, hash }: Verified, id: TokenId): Promise<Grant | null> {
    const { catalog, now } = this.#parts
    const { newBuckets } = this.#settings
    // A read, because a user without a bucket must not cause a write with each request.
    if (newBuckets === null && (await catalog.findBucketNamed(bucket)) === null) return null
    const createdAt = now()
    const user = { id, hash, bucket, name: subject, scopes: [], createdAt, expiresAt: null }
    const by = { ...service, kind: 'client', tokenId: id, subject: this.#subjectOf(subject) } as const
    return (await catalog.addUser(user, newBuckets, by)) ? catalog.findGrant(hash) : null
  }

  /** As in the audit log. */
  #subjectOf(subject: string): string {
    return `${this.#settings.issuer}|${subject}`
  }
}

const isFresh = ({ verifiedAt, expiresAt }: Verified, at: number): boolean =>
  Math.abs(at - verifiedAt) < verifiedFor && at < expiresAt + clockSkew

/** Tokens have SHA-256 hashes. Users have SHA-512/256 hashes, so that no token has the hash of a user. */
const hashUser = (issuer: string, subject: string, bucket: string): Uint8Array =>
  hash('sha512-256', JSON.stringify([issuer, subject, bucket]), 'buffer')

/** What a verified token of the issuer says about its user. */
export interface VerifiedUser {
  readonly subject: string
  /** Null if the claims name no bucket. */
  readonly bucket: string | null
  readonly scopes: ReadonlySet<Scope>
  /** Milliseconds since 1970, without the clock skew. */
  readonly expiresAt: number
}

/** The longest token that is verified. Characters. */
const maxLength = 8_192

/** The number of keys that are tried for a token without a key id. */
const maxKeys = 5

/** None with a shared secret, with which everyone who verifies tokens could also issue them. */
const algorithms = ['RS256', 'ES256', 'EdDSA']

/** The accepted difference between the clocks of the issuer and of the service. Milliseconds. */
const clockSkew = 30_000

/** The types of access tokens (RFC 9068), and of tokens without a special type. Others, such as logout tokens, grant nothing. */
const acceptedTypes: ReadonlySet<string> = new Set(['jwt', 'at+jwt', 'application/jwt', 'application/at+jwt'])

/** The library does not check that the type is text. */
const isAcceptedType = (typ: unknown): boolean =>
  typeof typ === 'string' && acceptedTypes.has(typ.toLowerCase())

interface JwtParts {
  readonly keys: Pick<IssuerKeys, 'find'>
  readonly now: () => number
  /** Receives a code of the library, or the name of a claim. */
  readonly onRefusal: (reason: string) => void
}

export const verifyJwtOperation =
  (settings: IssuerSettings, parts: JwtParts) =>
  (token: string): Promise<VerifiedUser> =>
    verifyJwt(settings, parts, token)

/**
 * Verifies a token of the issuer (docs/interface.md J1 to J3). Throws Fault `token-malformed`, `token-refused`, `token-expired` and
 * `issuer-unavailable`. The detail of `token-refused` is always the same; `onRefusal` receives the reason.
 */
async function verifyJwt(settings: IssuerSettings, parts: JwtParts, token: string): Promise<VerifiedUser> {
  const { bucket } = settings
  if (token.length > maxLength)
    throw new Fault('token-malformed', `This token has more than ${maxLength} characters.`)
  try {
    const { claims, subject, expiresAt } = await verifyClaims(settings, parts, token)
    return {
      subject,
      bucket: bucketNameFor(bucket, readClaim(claims, bucket.claim)),
      scopes: grantedScopes(settings, claims),
      expiresAt,
    }
  } catch (error) {
    const fault = refusal(error)
    if (fault === null) throw error
    parts.onRefusal(reasonOf(error))
    throw fault
  }
}

async function verifyClaims(
  { issuer, audience }: IssuerSettings,
  { keys, now }: JwtParts,
  token: string,
): Promise<{ readonly claims: Claims; readonly subject: string; readonly expiresAt: number }> {
  const at = now()
  const { payload, protectedHeader } = await verifySignature(keys, token, {
    issuer,
    audience,
    algorithms,
    clockTolerance: clockSkew / 1000,
    requiredClaims: ['exp', 'sub'],
    currentDate: new Date(at),
  })
  const { typ } = protectedHeader
  if (typ !== undefined && !isAcceptedType(typ)) throw new RefusedClaim('typ')
  const { sub, exp, iat } = payload
  if (iat !== undefined && iat * 1000 > at + clockSkew) throw new RefusedClaim('iat')
  // A token that is bound to a key (RFC 7800) must not be accepted without a proof of the key.
  if (payload['cnf'] !== undefined) throw new RefusedClaim('cnf')
  if (typeof sub !== 'string' || !isSubject(sub)) throw new RefusedClaim('sub')
  if (exp === undefined || exp * 1000 > lastTime) throw new RefusedClaim('exp')
  return { claims: payload, subject: sub, expiresAt: exp * 1000 }
}

/** Tries each key of the algorithm if the token names none, and the issuer has several, as during a rotation. */
async function verifySignature(
  keys: JwtParts['keys'],
  token: string,
  options: JWTVerifyOptions,
): Promise<JWTVerifyResult> {
  try {
    return await jwtVerify(token, (header, sent) => keys.find(header, sent), options)
  } catch (error) {
    if (!(error instanceof errors.JWKSMultipleMatchingKeys)) throw error
    let tried = 0
    for await (const key of error) {
      try {
        return await jwtVerify(token, key, options)
      } catch (failure) {
        tried += 1
        if (!(failure instanceof errors.JWSSignatureVerificationFailed) || tried === maxKeys) throw failure
      }
    }
    throw error
  }
}

function grantedScopes({ scopesClaim, defaultScopes }: IssuerSettings, claims: Claims): ReadonlySet<Scope> {
  const named = scopesOfClaim(readClaim(claims, scopesClaim))
  const granted = new Set(named.length > 0 ? named : defaultScopes)
  // A token or a webhook that a user creates would stay after the JWT expires.
  granted.delete('tokens:manage')
  granted.delete('webhooks:manage')
  return granted
}

const isSubject = (subject: string): boolean =>
  subject.length > 0 && subject.length <= 255 && subject.isWellFormed() && !/\p{Cc}/u.test(subject)

class RefusedClaim extends Error {
  readonly claim: string
  constructor(claim: string) {
    super('the claim has a value that is not accepted')
    this.claim = claim
  }
}

/** One of a small number of texts without values of the token: messages of the library may contain some. */
function reasonOf(error: unknown): string {
  if (error instanceof RefusedClaim) return `the value of ${error.claim}`
  if (error instanceof errors.JWTClaimValidationFailed) return `the value of ${error.claim}`
  return error instanceof errors.JOSEError ? error.code : 'a key that does not fit the algorithm'
}

/** Null if the error says nothing about the token. */
function refusal(error: unknown): Fault | null {
  if (error instanceof errors.JWTExpired) return new Fault('token-expired', 'This token has expired.')
  // The library throws a TypeError for a key that does not fit the algorithm, such as a short one.
  if (error instanceof RefusedClaim || error instanceof errors.JOSEError || error instanceof TypeError)
    return new Fault('token-refused', 'This is not a valid token of the issuer for this service.')
  return null
}
