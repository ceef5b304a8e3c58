import type { BucketId, Grant } from '../catalog/records.ts'

/** What a verified token grants. */
export interface VerifiedGrant extends Grant {
  /**
   * Waits for changes of the catalog that precede a request that writes: the removal of expired items, so that their quota is free, and the
   * row of a new user. The token is then verified again. Requests that only read do not wait. Left out if there are none.
   */
  readonly settle?: () => Promise<void>
}

/**
 * Removes the items of a bucket that have expired, in the background. The returned function waits for that; it throws Fault `catalog-busy` if
 * it takes long. Does nothing for a while after a failure: the sweep reports it.
 */
export type RemoveExpired = (bucketId: BucketId) => () => Promise<void>

/** Starts the removal of the items that have expired at `now`. Reads leave them out until they are removed (docs/interface.md E2). */
export const removeExpiredOf = (
  grant: VerifiedGrant,
  removeExpired: RemoveExpired,
  now: number,
): VerifiedGrant =>
  grant.nextExpiry !== null && grant.nextExpiry <= now
    ? { ...grant, settle: removeExpired(grant.bucketId) }
    : grant
