import { onTestFinished } from 'vitest'
import { createDatabase } from '../../../../../test/harness/postgres.ts'
import type { Catalog } from '../../../src/storage/catalog/catalog.ts'
import { openPostgresCatalog } from '../../../src/storage/catalog/engines/postgres/postgres-catalog.ts'

/** The URL of an empty database that is released when the test ends. */
export async function freshDatabase(): Promise<string> {
  const { url, release } = await createDatabase()
  onTestFinished(release)
  return url
}

/** The URL of a database for a catalog that the test opens; released when the test ends. */
export async function freshCatalog(): Promise<string> {
  const { url, release } = await createDatabase('catalog')
  onTestFinished(release)
  return url
}

/** Catalogs on one database, as in as many processes. */
export async function openSeveral(url: string, count: number): Promise<Catalog[]> {
  return Promise.all(Array.from({ length: count }, () => openCatalog(url)))
}

export async function openCatalog(url: string): Promise<Catalog> {
  const catalog = await openPostgresCatalog({ url, role: 'server' })
  onTestFinished(() => catalog.close())
  return catalog
}
