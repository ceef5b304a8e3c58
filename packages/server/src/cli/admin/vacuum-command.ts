import { UsageError } from '@mediabucket/cli/command'
import { createProgressBars, formatSize } from '@mediabucket/cli/terminal'
import { openVacuum } from '../../storage/engines.ts'
import { requireNoRestore } from '../../upkeep/interrupted-restore.ts'
import { vacuumCatalog } from '../../upkeep/vacuum.ts'
import type { Command } from '../command.ts'
import { requireData, requireLocalCatalog } from './open-catalog.ts'

const localOnly =
  'PostgreSQL reuses free space itself (autovacuum); VACUUM FULL returns it to the file system.'

export const vacuum: Command = {
  help: `Usage: mediabucket vacuum

The space of deleted rows stays in catalog.db, where new rows use it. This command returns it to the file system. Works while
the service is running, in steps of a few milliseconds. The service itself returns space when more than a quarter of the
catalog and more than 64 MiB of it are free.`,

  async run(args, { config, print }) {
    if (args.length > 0) throw new UsageError(`vacuum takes no arguments, but received: ${args.join(' ')}`)
    requireLocalCatalog(config, 'vacuum', localOnly)
    await requireData(config)
    requireNoRestore(config.data)
    const opened = await openVacuum(config)
    const bars = createProgressBars(process.stderr)
    try {
      const { before, after } = await vacuumCatalog(opened, (done, total) =>
        bars.show([{ name: 'Released', done, total }]),
      )
      bars.clear()
      print(`Returned ${formatSize(Math.max(0, before - after))}; catalog.db has ${formatSize(after)}.`)
    } finally {
      bars.clear()
      opened.close()
    }
  },
}
