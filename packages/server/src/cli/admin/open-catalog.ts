import { statSync } from 'node:fs'
import { userInfo } from 'node:os'
import { join, resolve } from 'node:path'
import { CommandError, exitCodes } from '@mediabucket/cli/command'
import { errorCode } from '../../core/faults.ts'
import { type Actor, operator } from '../../core/token-rules.ts'
import type { Config } from '../../service/config.ts'
import type { AuditEvent } from '../../storage/catalog/audit/audit-events.ts'
import type { Catalog } from '../../storage/catalog/catalog.ts'
import { hasData, openCatalog } from '../../storage/engines.ts'
import { requireNoRestore } from '../../upkeep/interrupted-restore.ts'
import type { CommandContext } from '../command.ts'

type Use<T> = (catalog: Catalog) => Promise<T>

/** Throws CommandError if there is no catalog: creating an empty one in a wrong place would look like data loss. */
export async function requireData(config: Config): Promise<void> {
  if (config.databaseUrl !== null) {
    if (await hasData(config)) return
    throw new CommandError(
      'the database in MEDIABUCKET_DATABASE_URL contains no data of Mediabucket. Set it to the database of the service.',
    )
  }
  if (!isAccessible(config.data))
    throw new CommandError(
      `${config.data} cannot be read by this user. Run this command as the owner of the data, for example with sudo -u.`,
    )
  if (!(await hasData(config)))
    throw new CommandError(
      `${config.data} contains no data of Mediabucket. Run this command where the service runs, or set MEDIABUCKET_DATA to its data directory.`,
    )
}

/** Throws CommandError with the advice if the catalog is not in the data directory. */
export function requireLocalCatalog({ databaseUrl }: Config, command: string, advice: string): void {
  if (databaseUrl !== null)
    throw new CommandError(`${command} does not work with MEDIABUCKET_DATABASE_URL. ${advice}`)
}

/** Whether this user may look up names in the directory; true if it does not exist. */
function isAccessible(directory: string): boolean {
  try {
    statSync(join(directory, 'catalog.db'))
    return true
  } catch (error) {
    return errorCode(error) !== 'EACCES'
  }
}

/** Opens the existing catalog for one command, and closes it in any case; safe while a server is running. Throws CommandError. */
export async function withCatalog<T>(config: Config, use: Use<T>): Promise<T> {
  await requireData(config)
  return open(config, use)
}

/** For commands that may run before the first start: creates the catalog if it does not exist, and reports its directory. */
export async function withNewCatalog<T>(
  { config, report }: Pick<CommandContext, 'config' | 'report'>,
  use: Use<T>,
): Promise<T> {
  const isNew = !(await hasData(config))
  const result = await open(config, use)
  if (isNew && config.databaseUrl === null)
    report(
      `Created ${resolve(config.data)}, because there was no data. If the service uses another directory, set MEDIABUCKET_DATA to it.`,
    )
  return result
}

/** Adds an event of the command to the audit log, if it is on. */
export async function recordCommand(config: Config, eventBy: (by: Actor) => AuditEvent): Promise<void> {
  await withCatalog(config, (catalog) => catalog.recordEvents([eventBy(operator(userName()))]))
}

async function open<T>(config: Config, use: Use<T>): Promise<T> {
  requireNoRestore(config.data)
  const catalog = await openCatalog(config, { writer: 'direct', actor: operator(userName()) })
  try {
    return await use(catalog)
  } finally {
    await catalog.close()
  }
}

/** The user of the operating system; its number if it has no name, as in some containers. */
function userName(): string {
  try {
    return userInfo().username
  } catch {
    return `uid ${process.getuid?.() ?? 'unknown'}`
  }
}

export const unknownBucket = (name: string): CommandError =>
  new CommandError(`there is no bucket "${name}". See: mediabucket bucket list`, exitCodes.notFound)
