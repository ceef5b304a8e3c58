import type { Catalog } from '../catalog/catalog.ts'
import type { TokenId } from '../catalog/records.ts'
import type { NewToken } from '../catalog/tokens.ts'
import { generateToken } from './new-token.ts'

type TokenRequest = Pick<NewToken, 'bucket' | 'name' | 'scopes' | 'expiresAt'> & {
  /** Milliseconds since 1970, as `expiresAt`. */
  readonly now: number
}

interface IssuedToken {
  readonly token: string
  readonly id: TokenId
}

/** Creates a token, and its bucket if it does not exist. Only the hash of the token is stored (docs/interface.md A8). */
export async function issueToken(
  catalog: Pick<Catalog, 'addToken'>,
  request: TokenRequest,
): Promise<IssuedToken & { readonly isNewBucket: boolean }> {
  const { token, row } = createToken(request)
  const isNewBucket = await catalog.addToken(row)
  return { token, id: row.id, isNewBucket }
}

/** Creates a bucket with a token. Null if the bucket exists: of several processes, one gets the token. */
export async function issueTokenOfNewBucket(
  catalog: Pick<Catalog, 'createBucketWithToken'>,
  request: TokenRequest,
): Promise<IssuedToken | null> {
  const { token, row } = createToken(request)
  return (await catalog.createBucketWithToken(row)) ? { token, id: row.id } : null
}

function createToken({ now, ...request }: TokenRequest): { token: string; row: NewToken } {
  const { token, row } = generateToken(now)
  return { token, row: { ...request, ...row } }
}
