import type { JsonObject } from '../core/json.ts'
import type { Actor, Scope } from '../core/token-rules.ts'
import type { Grant } from '../storage/catalog/records.ts'
import type { RequestParts } from './route.ts'

// The types of what verifies the token of a request.

/** What a verified token grants. */
export interface VerifiedGrant extends Grant {
  /** The token has expired, and is accepted for what it began before (docs/interface.md R14). Left out if it has not. */
  readonly isExpired?: boolean
  /**
   * Waits for changes of the catalog that precede a request that writes: the removal of expired items, so that their quota is free, and the
   * row of a new user. The token is then verified again. Requests that only read do not wait. Left out if there are none.
   */
  readonly settle?: () => Promise<void>
}

/** The caller of an operation: what its token grants, and who it is in the audit log. */
export interface Caller extends Grant {
  /** As VerifiedGrant.isExpired: true only with a `grace`. */
  readonly isExpired?: boolean
  readonly actor: Actor
}

/**
 * Verifies the token of a request, counts the request unless it was counted before, and requires `scope`, unless that is null.
 * Returns what the token grants; throws the Fault that names the reason for a refusal.
 */
export type Authorizer = (
  exchange: RequestParts,
  scope: Scope | null,
  options?: {
    readonly isCounted?: boolean
    /** Milliseconds for which a token is accepted after its expiry. */
    readonly grace?: number
    /** Waits until earlier changes are done, as for a request that changes the bucket: then a new user has a row. */
    readonly isSettled?: boolean
  },
) => Promise<Caller>

/**
 * Verifies the token of an Authorization header. Does not count the request and requires no scope. A token is accepted for `grace` milliseconds
 * after its expiry.
 */
export type AuthorizationVerifier = (authorization: string, grace?: number) => Promise<VerifiedGrant>

/**
 * Verifies the token of a request as an Authorizer, and reads its body as readJsonObject. The token is verified before the body is
 * read and again afterwards, because it can be revoked or expire while the body arrives (docs/interface.md A7, A9).
 */
export type AuthorizedJsonReader = (
  exchange: RequestParts,
  scope: Scope,
  members: readonly string[],
  types?: readonly string[],
) => Promise<{ readonly caller: Caller; readonly body: JsonObject }>
