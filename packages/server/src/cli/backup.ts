import { acquireBackupHold, hasData, openAudit, openBlobs, openBlobsDirectory } from '../engines.ts'
import { backUp } from '../upkeep/back-up.ts'
import { openBackupDirectory } from '../upkeep/backup-directory.ts'
import { requireBlobsDirectory } from '../upkeep/require-blobs-directory.ts'
import { parse } from './arguments.ts'
import { type Command, CommandError, UsageError } from './command.ts'
import { copyReportLines, explainCopyError, incompleteExit } from './copy-report.ts'
import { withCatalog } from './open-catalog.ts'
import { showProgress } from './progress.ts'

export const backup: Command = {
  summary: 'Copy everything to a directory, while serving.',
  help: `Usage: mediabucket backup DIR

Copies the data to the directory DIR, which is made if need be and must be outside of the data: rows and bytes as of
one moment, synced. Works beside a running server; what is deleted meanwhile stays on the disk until the backup ends.
A second backup to the same DIR copies only the bytes that are new, and takes the place of the first at once, when it
is whole: one that is interrupted leaves the first as it was, and is completed by running it again. Every byte is
hashed on its way. An item whose bytes are missing, unreadable or not those that were uploaded is reported by its id,
and listed in DIR/backup.json; everything else is copied. Exit code ${incompleteExit} if there were such items.

The bytes of items that were deleted since stay in DIR. To be rid of them, begin a new one.`,

  async run(args, { config, print }) {
    const { positionals } = parse('backup', { args: [...args], allowPositionals: true, options: {} })
    const [path, ...more] = positionals
    if (!path || more.length > 0) throw new UsageError('backup takes one DIR to copy to')
    if (!hasData(config))
      throw new CommandError(`there are no data in ${config.data}; set MEDIABUCKET_DATA to where they are`)
    await withCatalog(config, (catalog) =>
      requireBlobsDirectory({ catalog, directory: openBlobsDirectory(config) }),
    )
    const directory = await openBackupDirectory(path, config.data)
    const hold = acquireBackupHold(config)
    const progress = showProgress('Copied')
    const audit = await openAudit(config)
    try {
      const result = await backUp({
        audit,
        blobs: await openBlobs(config),
        directory,
        openAudit: (data) => openAudit({ data }),
        openBlobs: (data) => openBlobs({ data }),
        onItem: progress.show,
      })
      progress.end()
      const faults = result.faulty.length
      await withCatalog(config, (catalog) =>
        catalog.recordUpkeep({ kind: 'backup', finishedAt: Date.now(), faults }),
      )
      for (const line of copyReportLines('Backed up', result, path)) print(line)
      if (result.faulty.length > 0) print('  → mediabucket fsck --verify-bytes checks every item.')
    } catch (error) {
      throw explainCopyError(error, path)
    } finally {
      progress.end()
      await audit.close()
      hold.release()
    }
  },
}
