import type { BucketId, Grant } from '../catalog/records.ts'

/** Removes the items of a bucket that have expired. Throws Fault `catalog-busy` if there are too many to wait for. */
export type RemoveExpired = (bucketId: BucketId) => Promise<void>

/**
 * The grant after the items that have expired at `at` were removed, so that no list, total or entity tag includes them (docs/interface.md
 * E2). Null if the token no longer exists.
 */
export async function withoutExpiredItems(
  parts: { readonly removeExpired: RemoveExpired; readonly findGrant: () => Promise<Grant | null> },
  grant: Grant,
  at: number,
): Promise<Grant | null> {
  let current: Grant | null = grant
  // Work that was shared with an earlier request may have begun before the last item expired.
  for (let round = 0; round < 2 && current !== null && hasExpiredItems(current, at); round += 1) {
    await parts.removeExpired(current.bucketId)
    current = await parts.findGrant()
  }
  return current
}

/** Whether the bucket has items that have expired. */
const hasExpiredItems = ({ nextExpiry }: Pick<Grant, 'nextExpiry'>, now: number): boolean =>
  nextExpiry !== null && nextExpiry <= now
