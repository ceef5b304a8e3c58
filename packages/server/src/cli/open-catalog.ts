import type { Catalog } from '../catalog/catalog.ts'
import type { Config } from '../config/config.ts'
import { hasData, openCatalog } from '../engines.ts'
import { requireNoRestore } from '../upkeep/restore-stage.ts'
import { CommandError, exitCodes } from './command.ts'

type Use<T> = (catalog: Catalog) => Promise<T>

/** Throws CommandError if the directory has no catalog: creating an empty one in a wrong directory would look like data loss. */
export function requireData(config: Config): void {
  if (!hasData(config))
    throw new CommandError(
      `${config.data} contains no data of Mediabucket. Run this command where the service runs, or set MEDIABUCKET_DATA to its data directory.`,
    )
}

/** Opens the existing catalog for one command, and closes it in any case; safe while a server is running. Throws CommandError. */
export async function withCatalog<T>(config: Config, use: Use<T>): Promise<T> {
  requireData(config)
  return withNewCatalog(config, use)
}

/** For commands that may run before the first start: creates the catalog if it does not exist. */
export async function withNewCatalog<T>(config: Config, use: Use<T>): Promise<T> {
  requireNoRestore(config.data)
  const catalog = await openCatalog(config, { writer: 'direct' })
  try {
    return await use(catalog)
  } finally {
    await catalog.close()
  }
}

export const unknownBucket = (name: string): CommandError =>
  new CommandError(`there is no bucket "${name}". See: mediabucket bucket list`, exitCodes.notFound)
