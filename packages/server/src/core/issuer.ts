import type { BucketPattern, BucketSettings } from './bucket-settings.ts'
import { isScope, type Scope, scopes } from './token-rules.ts'

/** How the tokens of an issuer are verified, and what they grant (docs/interface.md, Tokens of an issuer). */
export interface IssuerSettings {
  /** Equals the claim `iss`. */
  readonly issuer: string
  /** The URL of the issuer's keys; null if its discovery document names it. */
  readonly jwksUrl: string | null
  readonly audience: string
  /** The name of a user's bucket. */
  readonly bucket: BucketPattern
  /** The settings of buckets that are created when their first user needs them; null if none are created. */
  readonly newBuckets: Partial<BucketSettings> | null
  /** The claim with the scopes. */
  readonly scopesClaim: string
  /** The scopes of tokens whose claim names no scope of this service. */
  readonly defaultScopes: readonly Scope[]
  /** Null if the gallery offers no sign-in with the issuer. */
  readonly signIn: SignInSettings | null
}

/** The gallery as a public client of the issuer (docs/interface.md G25). */
export interface SignInSettings {
  readonly clientId: string
  /** The issuer’s name on the button. */
  readonly name: string
  /** Separated by spaces. */
  readonly scope: string
  /** Further parameters of the authorization request. */
  readonly parameters: Readonly<Record<string, string>>
}

/** The rule of `isIssuerUrl`, for help and error messages. */
export const issuerUrlRule =
  'an https URL without credentials and fragment; http is accepted on the own machine only'

/** Whether tokens may be verified with what this URL serves. Without TLS, others on the network could replace it. */
export function isIssuerUrl(text: string): boolean {
  const url = URL.parse(text)
  if (!url || url.username || url.password || url.hash) return false
  return url.protocol === 'https:' || (url.protocol === 'http:' && isLoopback(url.hostname))
}

const isLoopback = (host: string): boolean =>
  host === 'localhost' || host === '[::1]' || /^127\.\d+\.\d+\.\d+$/.test(host)

/** The members of a JSON object, such as the claims of a verified token. */
export type Claims = Readonly<Record<string, unknown>>

/** Returns the value of a claim: a name, or a JSON Pointer (RFC 6901) such as `/resource_access/media/roles`. */
export function readClaim(claims: Claims, name: string): unknown {
  if (!name.startsWith('/')) return member(claims, name)
  const names = name.slice(1).split('/')
  return names.reduce<unknown>(
    (value, part) => member(value, part.replaceAll('~1', '/').replaceAll('~0', '~')),
    claims,
  )
}

const member = (value: unknown, name: string): unknown =>
  isClaims(value) && Object.hasOwn(value, name) ? value[name] : undefined

export const isClaims = (value: unknown): value is Claims => typeof value === 'object' && value !== null

/** Returns the scopes of this service in a claim: names separated by spaces, or an array of names. Ignores all others. */
export function scopesOfClaim(value: unknown): readonly Scope[] {
  const names: readonly unknown[] =
    typeof value === 'string' ? value.split(' ') : Array.isArray(value) ? value : []
  const known = new Set(names.filter((name) => typeof name === 'string' && isScope(name)))
  return scopes.filter((scope) => known.has(scope))
}
