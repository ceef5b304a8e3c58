import { DataLockedError, lockData, openVacuum } from '../engines.ts'
import { requireNoRestore } from '../upkeep/require-no-restore.ts'
import { vacuumCatalog } from '../upkeep/vacuum-catalog.ts'
import { createProgressBars } from './client/progress-bars.ts'
import { formatSize } from './client/terminal-text.ts'
import { type Command, CommandError, UsageError } from './command.ts'
import { requireData, requireLocalCatalog } from './open-catalog.ts'

const localOnly =
  'PostgreSQL reuses free space itself (autovacuum); VACUUM FULL returns it to the file system.'

export const vacuum: Command = {
  help: `Usage: mediabucket vacuum

The space of deleted rows stays in catalog.db, where new rows use it. This command returns it to the file system. Works while
the service is running, in steps of a few milliseconds. The service itself returns space when more than a quarter of the
catalog and more than 64 MiB of it are free.

A catalog that was created by an earlier version is rewritten as a whole, once. Stop the service for that. It
needs free space of twice the size of the catalog. If it is interrupted, the catalog stays as it was.`,

  async run(args, { config, print, report }) {
    if (args.length > 0) throw new UsageError(`vacuum takes no arguments, but received: ${args.join(' ')}`)
    requireLocalCatalog(config, 'vacuum', localOnly)
    await requireData(config)
    requireNoRestore(config.data)
    const opened = await openVacuum(config)
    const bars = createProgressBars(process.stderr)
    try {
      const { before, after } = await vacuumCatalog({
        vacuum: opened,
        lock: () => lockUnlessServed(config),
        onProgress: (done, total) => bars.show([{ name: 'Released', done, total }]),
        onRewrite: (size) => report(`Rewriting catalog.db (${formatSize(size)}).`),
      })
      bars.clear()
      print(`Returned ${formatSize(Math.max(0, before - after))}; catalog.db has ${formatSize(after)}.`)
    } finally {
      bars.clear()
      opened.close()
    }
  },
}

function lockUnlessServed(config: Parameters<typeof lockData>[0]): ReturnType<typeof lockData> {
  try {
    return lockData(config)
  } catch (error) {
    if (!(error instanceof DataLockedError)) throw error
    throw new CommandError(
      `${config.data}/catalog.db was created by an earlier version, and must be rewritten once. Stop the service, then run this command again.`,
    )
  }
}
