import type { Catalog } from '../catalog/catalog.ts'
import type { Config } from '../config.ts'
import { openCatalog } from '../engines.ts'

/** Opens the catalog for one command, beside a running server or without one, and closes it whatever happens. */
export async function withCatalog<T>(config: Config, use: (catalog: Catalog) => Promise<T>): Promise<T> {
  const catalog = await openCatalog(config, { writer: 'direct' })
  try {
    return await use(catalog)
  } finally {
    await catalog.close()
  }
}
