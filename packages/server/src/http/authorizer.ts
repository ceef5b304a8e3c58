import type { JsonObject } from '../core/json.ts'
import type { Actor, Scope, ServiceScope } from '../core/token-rules.ts'
import type { Grant, TokenId } from '../storage/catalog/records.ts'
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
  readonly earlierWork?: () => Promise<void>
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
    readonly waits?: boolean
    /** What the request was granted before. Throws as bucketDeleted if the name of its bucket is that of another one now (docs/interface.md ST8). */
    readonly previous?: Pick<Grant, 'bucketId'>
  },
) => Promise<Caller>

/** The caller of an operation of the whole service, which has a service token. */
export interface ServiceCaller {
  readonly tokenId: TokenId
  readonly scopes: ReadonlySet<ServiceScope>
  readonly expiresAt: number | null
  readonly actor: Actor
}

/** As Authorizer, for operations of the whole service, and those whose path names the bucket. Tokens of buckets lack every scope of the service. */
export type ServiceAuthorizer = (
  exchange: RequestParts,
  scope: ServiceScope | null,
  options?: { readonly isCounted?: boolean },
) => Promise<ServiceCaller>

/**
 * Verifies the token of an Authorization header, for the bucket that the header Mediabucket-Bucket names, if it was sent. Does not count the request and
 * requires no scope. A token is accepted for `grace` milliseconds after its expiry.
 */
export type AuthorizationVerifier = (
  authorization: string,
  bucket: string | undefined,
  grace?: number,
) => Promise<VerifiedGrant>

/**
 * Verifies the token of a request as an Authorizer or a ServiceAuthorizer, and reads its body as readJsonObject. The token is verified before the body is
 * read and again afterwards, because it can be revoked or expire while the body arrives (docs/interface.md A7, A9).
 */
export type AuthorizedJsonReader<Name extends ServiceScope = Scope, By = Caller> = (
  exchange: RequestParts,
  scope: Name,
  members: readonly string[],
  types?: readonly string[],
) => Promise<{ readonly caller: By; readonly body: JsonObject }>
