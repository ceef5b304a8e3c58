import { resolve } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { copyEvent } from '../catalog/audit-log/events.ts'
import type { Config } from '../config/config.ts'
import { settings } from '../config/settings.ts'
import { withoutPassword } from '../core/database-urls.ts'
import {
  lockData,
  openAudit,
  openBlobs,
  openBlobsDirectory,
  openBlobsTarget,
  openCatalogSource,
  openCatalogTarget,
} from '../engines.ts'
import { requireBlobsDirectory } from '../upkeep/require-blobs-directory.ts'
import { parse } from './arguments.ts'
import { createItemProgress } from './client/progress-bars.ts'
import { type Command, CommandError, exitCodes, UsageError } from './command.ts'
import { copyReportLines, explainCopyError, faultyItemLines } from './copy-report.ts'
import { recordCommand, requireData, withCatalog } from './open-catalog.ts'
import { formatCount } from './table.ts'

export const migrate: Command = {
  help: `Usage: mediabucket migrate --to TARGET [--to TARGET]

Copies the data of the service that the settings describe. URLs, tokens, the order of items and totals stay the same. The
source is not changed. No service may use the source or a target. Unfinished resumable uploads are not copied.

TARGET is one of:
  postgres://…   An empty PostgreSQL database, to which the rows are copied. Put its password into PGPASSWORD or a
                 password file, because other users of the machine can see arguments.
  s3://…         A bucket of an S3 store, as in MEDIABUCKET_BLOBS_URL, to which the bytes of large files are copied.
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
        for (const line of copyReportLines(
          'Copied the bytes of',
          result.bytes,
          (await openBlobsDirectory(target)).path,
        ))
          print(line)
      else for (const line of faultyItemLines(result.faulty)) print(line)
      // With the rows in their place, the audit log stays too, and the source does not change.
      const { items } = result
      if (items !== null)
        await recordCommand(target, (by) => copyEvent('migrate', { items, faults: result.faulty.length }, by))
      print(
        `Change these settings of the service, and start it: ${assignments(config, target, values.to ?? []).join(' ')}`,
      )
    } catch (error) {
      throw explainCopyError(error, (await openBlobsDirectory(target)).path)
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
  const [database, ...moreDatabases] = targets.filter(isDatabase)
  const [store, ...moreStores] = targets.filter(isStore)
  const [directory, ...moreDirectories] = targets.filter((target) => !isDatabase(target) && !isStore(target))
  if (targets.length === 0) throw new UsageError('migrate needs --to TARGET')
  if (moreDatabases.length + moreStores.length + moreDirectories.length > 0)
    throw new UsageError('migrate takes at most one TARGET of each kind')
  const isMoved = directory !== undefined
  return {
    ...config,
    data: directory ?? config.data,
    databaseUrl:
      database === undefined && !isMoved ? config.databaseUrl : read('MEDIABUCKET_DATABASE_URL', database),
    blobsUrl: store === undefined && !isMoved ? config.blobsUrl : read('MEDIABUCKET_BLOBS_URL', store),
  }
}

const isDatabase = (target: string) => /^postgres(ql)?:/.test(target)
const isStore = (target: string) => target.startsWith('s3:')

/** Throws UsageError. */
function read<K extends 'MEDIABUCKET_DATABASE_URL' | 'MEDIABUCKET_BLOBS_URL'>(name: K, text = '') {
  const { reader } = settings[name]
  const value = reader.read(text)
  if (value === undefined) throw new UsageError(`--to takes ${reader.accepts}`)
  return value
}

function movesBetween(config: Config, target: Config): Moves {
  const isOtherDirectory = resolve(target.data) !== resolve(config.data)
  return {
    rows: target.databaseUrl !== config.databaseUrl || (target.databaseUrl === null && isOtherDirectory),
    bytes:
      !isDeepStrictEqual(target.blobsUrl, config.blobsUrl) || (target.blobsUrl === null && isOtherDirectory),
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
  const identity = moves.bytes ? await requireStores(config, target) : null
  await using stack = new AsyncDisposableStack()
  const open = async <T extends { close(): Promise<void> }>(opening: Promise<T>): Promise<T> => {
    const opened = await opening
    stack.defer(() => opened.close())
    return opened
  }
  const result = await copy({
    source: await open(openCatalogSource(config)),
    audit: await open(openAudit(config)),
    target: moves.rows ? await open(openCatalogTarget(target)) : null,
    blobs: moves.bytes
      ? { from: await open(openBlobs(config)), to: await open(openBlobsTarget(target)) }
      : null,
    onBytes: progress.show,
    onRows: progress.show,
  })
  // The next start of a service on new rows gives its store an identity.
  if (identity !== null && !moves.rows) await (await openBlobsDirectory(target)).writeIdentity(identity)
  return result
}

/** Returns the identity of the source of the bytes. Throws BlobsMismatchError, and CommandError if the target is in use. */
async function requireStores(config: Config, target: Config): Promise<string | null> {
  const { path, readIdentity } = await openBlobsDirectory(target)
  if ((await readIdentity()) !== null)
    throw new CommandError(`${path} holds the bytes of another catalog. Choose an empty TARGET.`)
  return withCatalog(config, async (catalog) => {
    await requireBlobsDirectory({ catalog, directory: await openBlobsDirectory(config) })
    return catalog.blobsIdentity()
  })
}

/** The settings that the migration changes, without passwords. */
function assignments(config: Config, target: Config, targets: readonly string[]): string[] {
  const { data, databaseUrl } = target
  const isNewDirectory = resolve(data) !== resolve(config.data)
  return [
    ...(isNewDirectory ? [`MEDIABUCKET_DATA=${data}`] : []),
    ...(databaseUrl === config.databaseUrl
      ? []
      : [`MEDIABUCKET_DATABASE_URL=${databaseUrl === null ? '' : `'${withoutPassword(databaseUrl)}'`}`]),
    ...(isDeepStrictEqual(target.blobsUrl, config.blobsUrl)
      ? []
      : [`MEDIABUCKET_BLOBS_URL='${targets.find(isStore) ?? ''}'`]),
  ]
}
