import { randomBytes } from 'node:crypto'
import { resolve } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { CommandError, exitCodes, parse, UsageError } from '@mediabucket/cli/command'
import { createItemProgress, formatCount } from '@mediabucket/cli/terminal'
import { withoutPassword } from '../../core/storage-urls.ts'
import type { Config } from '../../service/config.ts'
import type { Reader } from '../../service/setting-readers.ts'
import { settings } from '../../service/settings.ts'
import { copyEvent } from '../../storage/catalog/audit/audit-events.ts'
import { movedIdentity, movedSettings, movedText } from '../../storage/catalog/moved-data.ts'
import type { CatalogSource } from '../../storage/catalog/transfer.ts'
import {
  lockData,
  markDirectory,
  markTransfer,
  openBlobs,
  openBlobsDirectory,
  openBlobsTarget,
  openCatalogSource,
  openCatalogTarget,
  openInspection,
  unmarkDirectory,
} from '../../storage/engines.ts'
import { ensureBlobsIdentity, requireBlobsDirectory } from '../../upkeep/blobs-identity.ts'
import type { Command } from '../command.ts'
import { copyReportLines, explainCopyError, faultyItemLines } from './copy-report.ts'
import { recordCommand, requireData, withCatalog } from './open-catalog.ts'

export const migrate: Command = {
  help: `Usage: mediabucket migrate --to TARGET [--to TARGET]
       mediabucket migrate --reopen

Copies the data of the service that the settings describe. URLs, tokens, the order of items, totals and the audit log stay
the same. No service may use the source or a target. Unfinished resumable uploads are not copied. The source is not changed,
but it is marked: no service starts on it any more, and every command refuses it and names the TARGET.

TARGET is one of:
  postgres://…   An empty PostgreSQL database, to which the rows are copied. Put its password into PGPASSWORD or a
                 password file, because other users of the machine can see arguments.
  s3://…         A bucket of an S3 store, as in MEDIABUCKET_BLOBS_URL, to which the bytes of large files are copied.
  DIR            A directory for what no other TARGET receives: the rows as catalog.db, and the bytes of large files.

Every byte that is copied is hashed. An item whose bytes are missing or damaged is reported by its id, and its URL responds
with 500. The exit code is ${exitCodes.incomplete} if there are such items.

To complete an interrupted migration, run the same command again. No service starts on the target before.

Options:
  --reopen  Removes the mark of the source that the settings describe, so that it can be used again without the changes
            that were made since.`,

  async run(args, { config, print }) {
    const { values } = parse('migrate', {
      args: [...args],
      options: { to: { type: 'string', multiple: true }, reopen: { type: 'boolean', default: false } },
    })
    if (values.reopen) {
      if (values.to !== undefined) throw new UsageError('migrate takes --to or --reopen, not both')
      return print(await reopen(config))
    }
    const target = targetOf(config, values.to ?? [])
    const moves = movesBetween(config, target)
    if (!moves.rows && !moves.bytes) throw new UsageError('the data are at this TARGET already')
    await requireData(config)
    const locks = [lockData(config)]
    const progress = createItemProgress('Copied')
    const settings = assignments(config, target, values.to ?? []).join(' ')
    try {
      const lockTarget = () => {
        if (isOtherDirectory(config, target)) locks.push(lockData(target))
      }
      const result = await copyData({ config, target, moves, settings, lockTarget, progress })
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
      // With the rows in their place, the audit log stays too.
      const { items } = result
      if (items !== null)
        await recordCommand(target, (by) => copyEvent('migrate', { items, faults: result.faulty.length }, by))
      print(`Change these settings of the service, and start it: ${settings}`)
    } catch (error) {
      throw explainCopyError(error, (await openBlobsDirectory(target)).path)
    } finally {
      progress.end()
      for (const lock of locks) lock.release()
    }
  },
}

/** Lets every process use the data of these settings again after they have moved. Returns what was done. */
async function reopen(config: Config): Promise<string> {
  await requireData(config)
  const source = await openCatalogSource(config)
  try {
    const bytes = await openBlobsDirectory(config)
    const [movedRows, movedBytes] = [await source.movedTo(), movedSettings(await bytes.readIdentity())]
    const settings = movedRows ?? movedBytes
    if (settings === null) return 'The data were not moved by mediabucket migrate. Nothing was changed.'
    if (movedRows === null) {
      // With the former identity, services could also use the new store of the bytes with these rows.
      const identity = randomBytes(16).toString('hex')
      await source.reopenBytes(identity)
      await bytes.writeIdentity(identity)
      return `The earlier store of the bytes can be used again: start the service again. It does not have the bytes of items that were uploaded with ${settings}.`
    }
    const identity = await source.blobsIdentity()
    if (movedBytes !== null && identity !== null) await bytes.writeIdentity(identity)
    await source.reopen()
    return `The earlier data can be used again. Changes that were made with ${settings} are not in them.`
  } finally {
    await source.close()
  }
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
      database === undefined && !isMoved
        ? config.databaseUrl
        : read(settings.MEDIABUCKET_DATABASE_URL.reader, database),
    blobsUrl:
      store === undefined && !isMoved ? config.blobsUrl : read(settings.MEDIABUCKET_BLOBS_URL.reader, store),
  }
}

const isDatabase = (target: string) => /^postgres(ql)?:/.test(target)
const isStore = (target: string) => target.startsWith('s3:')

/** Throws UsageError. */
function read<T>(reader: Reader<T>, text = ''): T {
  const value = reader.read(text)
  if (value === undefined) throw new UsageError(`--to takes ${reader.accepts}`)
  return value
}

const isOtherDirectory = (config: Config, target: Config): boolean =>
  resolve(target.data) !== resolve(config.data)

function movesBetween(config: Config, target: Config): Moves {
  const isOther = isOtherDirectory(config, target)
  return {
    rows: target.databaseUrl !== config.databaseUrl || (target.databaseUrl === null && isOther),
    bytes: !isDeepStrictEqual(target.blobsUrl, config.blobsUrl) || (target.blobsUrl === null && isOther),
  }
}

async function copyData(parts: {
  readonly config: Config
  readonly target: Config
  readonly moves: Moves
  /** The settings that change. */
  readonly settings: string
  readonly lockTarget: () => void
  readonly progress: ReturnType<typeof createItemProgress>
}) {
  const { config, target, moves, settings, lockTarget, progress } = parts
  // Loaded here, so that other commands start faster.
  const { migrate: copy } = await import('../../upkeep/migration.ts')
  await using stack = new AsyncDisposableStack()
  const open = async <T extends { close(): Promise<void> }>(opening: Promise<T>): Promise<T> => {
    const opened = await opening
    stack.defer(() => opened.close())
    return opened
  }
  const source = await open(openCatalogSource(config))
  const movedTo = await source.movedTo()
  // The same migration may have been interrupted after it had closed the source.
  if (movedTo !== null && movedTo !== settings) throw new CommandError(movedText('the source', movedTo))
  // The first start on the target gives the bytes a new identity. Without one of its own, the source could be opened again and would not
  // notice that. Restored data that no service has used have none.
  if (movedTo === null)
    await withCatalog(config, async (catalog) =>
      ensureBlobsIdentity({ catalog, directory: await openBlobsDirectory(config) }),
    )
  const identity = moves.bytes ? await requireStores({ config, target, settings, source }) : null
  if (movedTo === null && isOtherDirectory(config, target)) markDirectory(target)
  if (moves.rows) await markTransfer(target)
  lockTarget()
  const rows = moves.rows ? await open(openCatalogTarget(target)) : null
  if (movedTo !== null) {
    if (!(await rows?.isUnfinished())) throw new CommandError(movedText('the source', movedTo))
    await source.reopen()
  }
  const result = await copy({
    source,
    inspection: await open(openInspection(config)),
    target: rows,
    settings,
    blobs: moves.bytes
      ? { from: await open(openBlobs(config)), to: await open(openBlobsTarget(target)) }
      : null,
    async markBytes() {
      const bytes = await openBlobsDirectory(config)
      // Where the bytes stay, the first start on the target replaces this identity. In a shared store it would keep the one of the source.
      if (moves.bytes ? !moves.rows : bytes.isShared) await bytes.writeIdentity(movedIdentity(settings))
    },
    onBytes: progress.show,
    onRows: progress.show,
  })
  // The next start of a service on new rows gives its store an identity.
  if (identity !== null && !moves.rows) await (await openBlobsDirectory(target)).writeIdentity(identity)
  if (isOtherDirectory(config, target)) unmarkDirectory(target)
  return result
}

/** Returns the identity of the source of the bytes. Throws BlobsMismatchError, and CommandError if the target is in use. */
async function requireStores(parts: {
  readonly config: Config
  readonly target: Config
  readonly settings: string
  readonly source: Pick<CatalogSource, 'blobsIdentity'>
}): Promise<string | null> {
  const { config, target, settings, source } = parts
  const [directory, bytes] = [await openBlobsDirectory(config), await openBlobsDirectory(target)]
  const found = await bytes.readIdentity()
  // The same migration of only the bytes may have been interrupted after it had marked their source.
  const isContinued = found === null && movedSettings(await directory.readIdentity()) === settings
  if (!isContinued) await requireBlobsDirectory({ catalog: source, directory })
  if (found !== null)
    throw new CommandError(`${bytes.path} holds the bytes of a catalog already. Choose an empty TARGET.`)
  return await source.blobsIdentity()
}

/** The settings that the migration changes, without passwords. */
function assignments(config: Config, target: Config, targets: readonly string[]): string[] {
  const { data, databaseUrl } = target
  return [
    ...(isOtherDirectory(config, target) ? [`MEDIABUCKET_DATA=${resolve(data)}`] : []),
    ...(databaseUrl === config.databaseUrl
      ? []
      : [`MEDIABUCKET_DATABASE_URL=${databaseUrl === null ? '' : `'${withoutPassword(databaseUrl)}'`}`]),
    ...(isDeepStrictEqual(target.blobsUrl, config.blobsUrl)
      ? []
      : [`MEDIABUCKET_BLOBS_URL='${targets.find(isStore) ?? ''}'`]),
  ]
}
