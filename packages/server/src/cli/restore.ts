import { copyEvent } from '../catalog/audit-log/events.ts'
import { copyBackup, lockData, openBlobs, openCopyableAudit } from '../engines.ts'
import { parse } from './arguments.ts'
import { createItemProgress } from './client/progress-bars.ts'
import { type Command, CommandError, exitCodes, UsageError } from './command.ts'
import { copyReportLines, explainCopyError } from './copy-report.ts'
import { recordCommand, requireLocalCatalog } from './open-catalog.ts'

const localOnly =
  'Unset it, restore into a directory, and copy that to an empty database: mediabucket migrate --to postgres://…'

export const restore: Command = {
  help: `Usage: mediabucket restore DIR

Copies the last completed backup in DIR to the directory MEDIABUCKET_DATA, which must be empty or not exist; no service
may run on it. Unfinished resumable uploads are ended.

Every byte is hashed while it is copied. An item whose bytes are missing or damaged in the backup is reported by its id
and restored without them: it is listed, and its URL responds with 500. The exit code is ${exitCodes.incomplete} if there are such items.

To complete an interrupted restore, run the same command again. Until then, no service starts on the directory.`,

  async run(args, { config, print }) {
    const { positionals } = parse('restore', { args: [...args], allowPositionals: true, options: {} })
    const [from, ...more] = positionals
    if (from === undefined || more.length > 0)
      throw new UsageError('restore takes one DIR, the directory of a backup')
    requireLocalCatalog(config, 'restore', localOnly)
    if (config.blobsUrl !== null)
      throw new CommandError(
        'restore writes files to the data directory, not to MEDIABUCKET_BLOBS_URL. Unset it to restore a backup to the data directory. To restore objects in an S3 store, use the tools of the store.',
      )
    // Loaded here, so that other commands start faster.
    const { restore: restoreBackup } = await import('../upkeep/restore.ts')
    const progress = createItemProgress('Restored')
    try {
      const result = await restoreBackup({
        from,
        data: config.data,
        lock: () => lockData(config),
        copyRows: copyBackup,
        openAudit: (data) => openCopyableAudit({ data }),
        openBlobs: (data) => openBlobs({ data }),
        onItem: progress.show,
      })
      progress.end()
      for (const line of copyReportLines('Restored', result, config.data)) print(line)
      const counts = { items: result.items, faults: result.faulty.length }
      await recordCommand(config, (by) => copyEvent('backup-restore', counts, by))
    } catch (error) {
      throw explainCopyError(error, config.data)
    } finally {
      progress.end()
    }
  },
}
