import type { Scope } from '../core/scopes.ts'
import type { TokenId } from './records.ts'

/** A token, without its hash; times are milliseconds since 1970. */
export interface TokenRecord {
  readonly id: TokenId
  readonly bucket: string
  readonly name: string
  readonly scopes: readonly Scope[]
  readonly createdAt: number
  readonly expiresAt: number | null
  readonly lastUsedAt: number | null
  readonly revokedAt: number | null
}

/** What differs for every new token. */
export interface NewTokenSecret {
  readonly id: TokenId
  /** SHA-256 of the token, 32 bytes. */
  readonly hash: Uint8Array
  readonly createdAt: number
}

/** A new token of a bucket that exists. */
export interface GrantedToken extends NewTokenSecret {
  readonly name: string
  readonly scopes: readonly Scope[]
  readonly expiresAt: number | null
}

export interface NewToken extends GrantedToken {
  /** The bucket's name; the bucket is created if it does not exist. */
  readonly bucket: string
}

/** A token that replaces another one, with its name and its scopes. */
export interface TokenSuccessor extends NewTokenSecret {
  readonly expiresAt: number | null
  /** The replaced token. */
  readonly replaces: TokenId
  /** The replaced token expires at this time at the latest. */
  readonly replacedUntil: number
}
