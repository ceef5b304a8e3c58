import { errors, type JWTVerifyOptions, type JWTVerifyResult, jwtVerify } from 'jose'
import { bucketNameFor } from '../../core/bucket-pattern.ts'
import { type Claims, readClaim, scopesOfClaim } from '../../core/claims.ts'
import { Fault } from '../../core/fault.ts'
import type { IssuerSettings } from '../../core/issuer-settings.ts'
import type { Scope } from '../../core/scopes.ts'
import type { IssuerKeys } from './issuer-keys.ts'

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
export const clockSkew = 30_000

/** The types of access tokens (RFC 9068), and of tokens without a special type. Others, such as logout tokens, grant nothing. */
const acceptedTypes: ReadonlySet<string> = new Set(['jwt', 'at+jwt', 'application/jwt', 'application/at+jwt'])

/** The library does not check that the type is text. */
const isAcceptedType = (typ: unknown): boolean =>
  typeof typ === 'string' && acceptedTypes.has(typ.toLowerCase())

/**
 * Verifies a token of the issuer (docs/interface.md J1 to J3). Throws Fault `token-malformed`, `token-refused`, `token-expired` and
 * `issuer-unavailable`. The detail of `token-refused` is always the same; `onRefusal` receives the reason.
 */
export function verifyJwtOperation(
  settings: IssuerSettings,
  parts: {
    readonly keys: Pick<IssuerKeys, 'find'>
    readonly now: () => number
    /** Receives a code of the library, or the name of a claim. */
    readonly onRefusal: (reason: string) => void
  },
): (token: string) => Promise<VerifiedUser> {
  const { issuer, audience, bucket, scopesClaim, defaultScopes } = settings
  const { keys, now, onRefusal } = parts

  async function verify(token: string) {
    const at = now()
    const { payload, protectedHeader } = await verifySignature(token, {
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
    if (exp === undefined || exp > maxTime) throw new RefusedClaim('exp')
    return { claims: payload, subject: sub, expiresAt: exp * 1000 }
  }

  /** Tries each key of the algorithm if the token names none, and the issuer has several, as during a rotation. */
  async function verifySignature(token: string, options: JWTVerifyOptions): Promise<JWTVerifyResult> {
    try {
      return await jwtVerify(token, keys.find, options)
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

  function grantedScopes(claims: Claims): ReadonlySet<Scope> {
    const named = scopesOfClaim(readClaim(claims, scopesClaim))
    const granted = new Set(named.length > 0 ? named : defaultScopes)
    // A token that a user creates would stay valid after the JWT expires.
    granted.delete('tokens:manage')
    return granted
  }

  return async (token) => {
    if (token.length > maxLength)
      throw new Fault('token-malformed', `This token has more than ${maxLength} characters.`)
    try {
      const { claims, subject, expiresAt } = await verify(token)
      return {
        subject,
        bucket: bucketNameFor(bucket, readClaim(claims, bucket.claim)),
        scopes: grantedScopes(claims),
        expiresAt,
      }
    } catch (error) {
      const fault = refusal(error)
      if (fault === null) throw error
      onRefusal(reasonOf(error))
      throw fault
    }
  }
}

/** Seconds since 1970: the last time that RFC 3339 can express. */
const maxTime = Date.UTC(9999, 11, 31) / 1000

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
