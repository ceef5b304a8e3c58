import { issueTokenOfNewBucket } from '../access/issue-token.ts'
import type { Catalog } from '../catalog/catalog.ts'
import { defaultScopes } from '../core/scopes.ts'

/** Creates the bucket `default` and its first token in a new catalog. Null if the catalog is not new, or another server creates it. */
export async function issueFirstToken(catalog: Catalog): Promise<string | null> {
  if (!(await catalog.isNew())) return null
  const issued = await issueTokenOfNewBucket(catalog, {
    bucket: 'default',
    name: 'first',
    scopes: defaultScopes,
    expiresAt: null,
    now: Date.now(),
  })
  return issued?.token ?? null
}
