import type { Actor } from '../core/actor.ts'
import type { BucketId, BucketSettings, TokenId } from './records.ts'
import type { GrantedToken, NewToken, TokenRecord, TokenSuccessor } from './token-records.ts'

/** The tokens of the catalog. */
export interface TokenCatalog {
  /** Creates the token, and its bucket if it does not exist. Returns whether it created the bucket. */
  addToken(token: NewToken, by?: Actor): Promise<boolean>

  /**
   * Creates the row of a user of an issuer, unless there is one with its hash. If the bucket does not exist,
   * creates it with the settings `newBucket`, or returns false if they are null.
   */
  addUser(user: NewToken, newBucket: Partial<BucketSettings> | null, by?: Actor): Promise<boolean>

  /** Creates the bucket of the token, and the token; false if the bucket exists. Of several processes, one succeeds. */
  createBucketWithToken(token: NewToken, by?: Actor): Promise<boolean>

  /** Creates a token of the bucket. Throws Fault `token-revoked` if the token `grantor` was revoked, or its bucket deleted. */
  grantToken(bucketId: BucketId, grantor: TokenId, token: GrantedToken, by?: Actor): Promise<void>

  /**
   * Creates the successor of a token of the bucket. False if the bucket has no such token that is valid when the successor is
   * created. Throws Fault `token-revoked` as grantToken.
   */
  rotateToken(bucketId: BucketId, grantor: TokenId, successor: TokenSuccessor, by?: Actor): Promise<boolean>

  token(id: TokenId): Promise<TokenRecord | null>

  /** Tokens of the bucket in the order of their creation, from that after `after` on; null begins with the first. */
  tokensAfter(bucketId: BucketId, after: TokenId | null, limit: number): Promise<TokenRecord[]>

  /** All tokens, or those of one bucket, oldest first; without their hashes. */
  tokens(bucket?: string): Promise<TokenRecord[]>

  /** False if there is no such token. A second revocation keeps the first time. */
  revokeToken(id: TokenId, at: number, by?: Actor): Promise<boolean>

  /** Records a use; the caller limits how often. */
  touchToken(id: TokenId, at: number): Promise<void>
}
