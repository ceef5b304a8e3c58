import { resolve } from 'node:path'
import type { Config } from '../config/config.ts'
import { settings } from '../config/settings.ts'
import {
  lockData,
  openAudit,
  openBlobs,
  openBlobsDirectory,
  openCatalogSource,
  openCatalogTarget,
} from '../engines.ts'
import { requireBlobsDirectory } from '../upkeep/require-blobs-directory.ts'
import { parse } from './arguments.ts'
import { createItemProgress } from './client/progress-bars.ts'
import { type Command, exitCodes, UsageError } from './command.ts'
import { copyReportLines, explainCopyError, faultyItemLines } from './copy-report.ts'
import { requireData, withCatalog } from './open-catalog.ts'
import { formatCount } from './table.ts'

export const migrate: Command = {
  summary: 'Copy all data to other engines, such as PostgreSQL.',
  help: `Usage: mediabucket migrate --to TARGET [--to TARGET]

Copies the data of the service that the settings describe. URLs, tokens, the order of items and totals stay the same. The
source is not changed. No service may use the source or a target. Unfinished resumable uploads are not copied.

TARGET is one of:
  postgres://…   An empty PostgreSQL database, to which the rows are copied. Put its password into PGPASSWORD or a
                 password file, because other users of the machine can see arguments.
  DIR            A directory for what no other TARGET receives: the rows as catalog.db, and the bytes of large files.

Every byte that is copied is hashed. An item whose bytes are missing or damaged is reported by its id, and its URL responds
with 500. The exit code is ${exitCodes.incomplete} if there are such items.

To complete an interrupted migration, run the same command again. No service starts on the target before.`,

  async run(args, { config, print }) {
    const { values } = parse('migrate', {
      args: [...args],
      options: { to: { type: 'string', multiple: true } },
    })
    const target = targetOf(config, values.to ?? [])
    const moves = movesBetween(config, target)
    if (!moves.rows && !moves.bytes) throw new UsageError('the data are at this TARGET already')
    await requireData(config)
    const locks = [lockData(config)]
    const progress = createItemProgress('Copied')
    try {
      if (resolve(target.data) !== resolve(config.data)) locks.push(lockData(target))
      const result = await copyData(config, target, moves, progress)
      progress.end()
      if (result.items !== null) print(`Copied the rows of ${formatCount(result.items, 'item')}.`)
      if (result.bytes !== null)
        for (const line of copyReportLines('Copied the bytes of', result.bytes, target.data)) print(line)
      else for (const line of faultyItemLines(result.faulty)) print(line)
      print(`Start the service with: ${assignments(config, target).join(' ')}`)
    } catch (error) {
      throw explainCopyError(error, target.data)
    } finally {
      progress.end()
      for (const lock of locks) lock.release()
    }
  },
}

interface Moves {
  readonly rows: boolean
  readonly bytes: boolean
}

/** The settings of the service after the migration. Throws UsageError. */
function targetOf(config: Config, targets: readonly string[]): Config {
  const databases = targets.filter((target) => /^postgres(ql)?:/.test(target))
  const directories = targets.filter((target) => !databases.includes(target))
  const [database, ...moreDatabases] = databases
  const [directory, ...moreDirectories] = directories
  if (targets.length === 0) throw new UsageError('migrate needs --to TARGET')
  if (moreDatabases.length + moreDirectories.length > 0)
    throw new UsageError('migrate takes at most one database and one directory')
  const data = directory ?? config.data
  if (database === undefined) return { ...config, data, databaseUrl: null }
  const databaseUrl = settings.MEDIABUCKET_DATABASE_URL.reader.read(database)
  if (typeof databaseUrl !== 'string')
    throw new UsageError(`--to takes ${settings.MEDIABUCKET_DATABASE_URL.reader.accepts}`)
  return { ...config, data, databaseUrl }
}

function movesBetween(config: Config, target: Config): Moves {
  const isOtherDirectory = resolve(target.data) !== resolve(config.data)
  const isOtherDatabase = target.databaseUrl !== config.databaseUrl
  return {
    rows: isOtherDatabase || (target.databaseUrl === null && isOtherDirectory),
    // Files in an S3 store stay there.
    bytes: isOtherDirectory && config.blobsUrl === null,
  }
}

async function copyData(
  config: Config,
  target: Config,
  moves: Moves,
  progress: ReturnType<typeof createItemProgress>,
) {
  // Loaded here, so that other commands start faster.
  const { migrate: copy } = await import('../upkeep/migrate.ts')
  if (moves.bytes)
    await withCatalog(config, async (catalog) =>
      requireBlobsDirectory({ catalog, directory: await openBlobsDirectory(config) }),
    )
  await using stack = new AsyncDisposableStack()
  const open = async <T extends { close(): Promise<void> }>(opening: Promise<T>): Promise<T> => {
    const opened = await opening
    stack.defer(() => opened.close())
    return opened
  }
  return await copy({
    source: await open(openCatalogSource(config)),
    audit: await open(openAudit(config)),
    target: moves.rows ? await open(openCatalogTarget(target)) : null,
    blobs: moves.bytes ? { from: await open(openBlobs(config)), to: await open(openBlobs(target)) } : null,
    onBytes: progress.show,
    onRows: progress.show,
  })
}

/** The settings that the migration changes, without passwords. */
function assignments(config: Config, target: Config): string[] {
  const { data, databaseUrl } = target
  const isNewDirectory = resolve(data) !== resolve(config.data)
  return [
    ...(isNewDirectory ? [`MEDIABUCKET_DATA=${data}`] : []),
    ...(databaseUrl === config.databaseUrl
      ? []
      : [`MEDIABUCKET_DATABASE_URL=${databaseUrl === null ? '' : withoutPassword(databaseUrl)}`]),
  ]
}

function withoutPassword(text: string): string {
  const url = new URL(text)
  if (url.password !== '') url.password = 'PASSWORD'
  return url.href
}
