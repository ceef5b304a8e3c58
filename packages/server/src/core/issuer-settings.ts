import type { BucketSettings } from './bucket-options.ts'
import type { BucketPattern } from './bucket-pattern.ts'
import type { Scope } from './scopes.ts'

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
