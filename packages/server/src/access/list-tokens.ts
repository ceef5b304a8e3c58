import type { Catalog } from '../catalog/catalog.ts'
import type { Grant, TokenId } from '../catalog/records.ts'
import { Fault } from '../core/fault.ts'
import type { TokenListQuery } from '../core/token-list-query.ts'
import { findManagedToken } from './find-managed-token.ts'
import { type ManagedTokenObject, managedTokenObject } from './token-object.ts'

export interface TokenList {
  readonly data: readonly ManagedTokenObject[]
  /** Null if no tokens follow. */
  readonly next_cursor: string | null
}

/** Lists tokens of the caller's bucket, oldest first (docs/interface.md T4). Throws Fault `cursor-malformed`. */
export async function listTokens(
  catalog: Pick<Catalog, 'token' | 'tokensAfter'>,
  grant: Pick<Grant, 'tokenId' | 'bucketId'>,
  { after, limit }: TokenListQuery,
): Promise<TokenList> {
  const previous = after === null ? null : await findPrevious(catalog, grant, after)
  // One more than the limit shows whether further tokens follow.
  const tokens = await catalog.tokensAfter(grant.bucketId, previous, limit + 1)
  const listed = tokens.slice(0, limit)
  return {
    data: listed.map(managedTokenObject),
    next_cursor: tokens.length > limit ? (listed.at(-1)?.id ?? null) : null,
  }
}

async function findPrevious(
  catalog: Pick<Catalog, 'token'>,
  grant: Pick<Grant, 'tokenId'>,
  after: string,
): Promise<TokenId> {
  try {
    return (await findManagedToken(catalog, grant, after)).id
  } catch (error) {
    if (!(error instanceof Fault)) throw error
    throw new Fault('cursor-malformed', 'This is not a cursor of this list.', { cause: error })
  }
}
