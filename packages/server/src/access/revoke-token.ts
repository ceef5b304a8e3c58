import type { Catalog } from '../catalog/catalog.ts'
import type { Grant } from '../catalog/records.ts'
import type { Actor } from '../core/actor.ts'
import { findManagedToken } from './find-managed-token.ts'

/** Revokes a token of the caller's bucket (docs/interface.md T7). Throws Fault `managed-token-unknown`. `now` is milliseconds since 1970. */
export async function revokeToken(
  catalog: Pick<Catalog, 'token' | 'revokeToken'>,
  grant: Pick<Grant, 'tokenId'>,
  id: string,
  now: number,
  by: Actor,
): Promise<void> {
  const token = await findManagedToken(catalog, grant, id)
  await catalog.revokeToken(token.id, now, by)
}
