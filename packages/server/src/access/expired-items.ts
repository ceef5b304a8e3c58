import type { Catalog } from '../catalog/catalog.ts'
import { expiryLimit } from '../catalog/changes.ts'
import type { Grant } from '../catalog/records.ts'

type ExpiringCatalog = Pick<Catalog, 'authorise' | 'expireItems'>

/**
 * Removes the expired items of the bucket before the request reads it, so that no list, total or entity tag includes them
 * (docs/interface.md E2). Returns the grant after the removal.
 */
export async function withoutExpiredItems(
  catalog: ExpiringCatalog,
  { bucketId }: Grant,
  tokenHash: Uint8Array,
  now: number,
): Promise<Grant | null> {
  while ((await catalog.expireItems(bucketId, now)).ids.length === expiryLimit);
  return catalog.authorise(tokenHash)
}

/** Whether the bucket has items that have expired. */
export const hasExpiredItems = ({ nextExpiry }: Pick<Grant, 'nextExpiry'>, now: number): boolean =>
  nextExpiry !== null && nextExpiry <= now
