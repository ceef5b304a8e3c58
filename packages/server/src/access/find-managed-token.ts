import type { Catalog } from '../catalog/catalog.ts'
import type { Grant } from '../catalog/records.ts'
import type { TokenRecord } from '../catalog/tokens.ts'
import { Fault } from '../core/fault.ts'
import { isTokenId } from './token-id.ts'

/** Finds a token of the caller's bucket. Throws Fault `managed-token-unknown`, also for tokens of other buckets (docs/interface.md A6). */
export async function findManagedToken(
  catalog: Pick<Catalog, 'token'>,
  grant: Pick<Grant, 'tokenId'>,
  id: string,
): Promise<TokenRecord> {
  const unknown = new Fault('managed-token-unknown', 'The bucket has no token with this id.')
  if (!isTokenId(id)) throw unknown
  const [own, token] = await Promise.all([catalog.token(grant.tokenId), catalog.token(id)])
  if (token === null || token.bucket !== own?.bucket) throw unknown
  return token
}
