import type { Catalog } from '../catalog/catalog.ts'
import type { Config } from '../config/config.ts'
import { hasData, openCatalog } from '../engines.ts'
import { requireNoRestore } from '../upkeep/restore-stage.ts'
import { CommandError } from './command.ts'

type Use<T> = (catalog: Catalog) => Promise<T>

/**
 * Opens the catalog for one command, beside a running server or without one, and closes it whatever happens. Throws
 * CommandError where there is none: an empty one, made in a wrong directory, would look as if all were lost.
 */
export async function withCatalog<T>(config: Config, use: Use<T>): Promise<T> {
  if (!hasData(config)) {
    throw new CommandError(
      `there are no data of Mediabucket in ${config.data}; run this where the server runs, or set MEDIABUCKET_DATA`,
    )
  }
  return withNewCatalog(config, use)
}

/** The same for commands that may come before the first start: the catalog is made where there is none. */
export async function withNewCatalog<T>(config: Config, use: Use<T>): Promise<T> {
  requireNoRestore(config.data)
  const catalog = await openCatalog(config, { writer: 'direct' })
  try {
    return await use(catalog)
  } finally {
    await catalog.close()
  }
}
