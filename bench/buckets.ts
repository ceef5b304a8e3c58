import { writeFileSync } from 'node:fs'
import { issueToken } from '../packages/server/src/access/issue-token.ts'
import { openSqliteCatalog } from '../packages/server/src/catalog/sqlite/catalog.ts'
import { seedBucket } from '../packages/server/src/catalog/sqlite/seed.ts'
import { defaultScopes } from '../packages/server/src/core/scopes.ts'

export interface Bucket {
  readonly token: string
  readonly pages: number
}

/** Fills buckets with rows, in this process: a command for each of a thousand would take minutes. */
export async function fillBuckets(
  directory: string,
  buckets: readonly { readonly bucket: string; readonly items: number; readonly deleteEvery?: number }[],
): Promise<Bucket[]> {
  const catalog = await openSqliteCatalog({ directory, writer: 'direct' })
  try {
    const filled: Bucket[] = []
    for (const { bucket, ...rest } of buckets) {
      const { total } = await seedBucket({ directory, bucket, ...rest })
      const request = { bucket, name: 'bench', scopes: defaultScopes, expiresAt: null, now: Date.now() }
      const { token } = await issueToken(catalog, request)
      filled.push({ token, pages: Math.max(1, Math.ceil(total / 10)) })
    }
    return filled
  } finally {
    await catalog.close()
  }
}

export const writeTokens = (file: string, buckets: readonly Bucket[]): void =>
  writeFileSync(file, buckets.map(({ token }) => token).join('\n'))
