import { writeFileSync } from 'node:fs'
import type { Catalog } from '../packages/server/src/storage/catalog/catalog.ts'
import { openSqliteCatalog } from '../packages/server/src/storage/catalog/engines/sqlite/sqlite-catalog.ts'
import { seedBucket } from './seed.ts'

export interface Bucket {
  readonly token: string
  readonly pages: number
}

interface Filling {
  readonly bucket: string
  readonly items: number
  readonly deleteEvery?: number
}

/** Fills buckets with small files, in this process: a command for each of a thousand would take minutes. */
export async function fillBuckets(directory: string, buckets: readonly Filling[]): Promise<Bucket[]> {
  const catalog = await openSqliteCatalog({ directory, writer: 'direct' })
  return fillCatalog(catalog, buckets).finally(catalog.close)
}

/** As fillBuckets, of a catalog on any engine. */
export async function fillCatalog(catalog: Catalog, buckets: readonly Filling[]): Promise<Bucket[]> {
  const filled: Bucket[] = []
  for (const { bucket, ...rest } of buckets) {
    const { token, total } = await seedBucket(catalog, bucket, rest)
    filled.push({ token, pages: Math.max(1, Math.ceil(total / 10)) })
  }
  return filled
}

export const writeTokens = (file: string, buckets: readonly Bucket[]): void =>
  writeFileSync(file, buckets.map(({ token }) => token).join('\n'))
