import { lockData, openAudit, openBlobs } from '../engines.ts'
import { restore as restoreBackup } from '../upkeep/restore.ts'
import { parse } from './arguments.ts'
import { type Command, UsageError } from './command.ts'
import { copyReportLines, explainCopyError, incompleteExit } from './copy-report.ts'
import { showProgress } from './progress.ts'

export const restore: Command = {
  summary: 'Put a backup into an empty data directory.',
  help: `Usage: mediabucket restore DIR

Puts the last finished backup in DIR into the directory MEDIABUCKET_DATA, which must be empty or not exist: nothing is
ever replaced. No server may run on it. Every byte is hashed on its way. An item whose bytes are not whole in the backup
is reported by its id, and restored without them: it is listed, and its URL answers 500. Resumable uploads that were not
finished are ended. A restore that was interrupted is completed by the same command; no server starts before.
Exit code ${incompleteExit} if items have no bytes.`,

  async run(args, { config, print }) {
    const { positionals } = parse('restore', { args: [...args], allowPositionals: true, options: {} })
    const [from, ...more] = positionals
    if (from === undefined || more.length > 0) throw new UsageError('restore takes the DIR of one backup')
    const lock = lockData(config)
    const progress = showProgress('Restored')
    try {
      const result = await restoreBackup({
        from,
        data: config.data,
        openAudit: (data) => openAudit({ data }),
        openBlobs: (data) => openBlobs({ data }),
        onItem: progress.show,
      })
      progress.end()
      for (const line of copyReportLines('Restored', result, config.data)) print(line)
    } catch (error) {
      throw explainCopyError(error, config.data)
    } finally {
      progress.end()
      lock.release()
    }
  },
}
