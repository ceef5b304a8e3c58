import { lockData, openAudit, openBlobs } from '../engines.ts'
import { restore as restoreBackup } from '../upkeep/restore.ts'
import { parse } from './arguments.ts'
import { tellCopied, tellFaulty } from './backup.ts'
import { type Command, UsageError } from './command.ts'
import { showProgress } from './progress.ts'

export const restore: Command = {
  summary: 'Put a backup into an empty data directory.',
  help: `Usage: mediabucket restore DIR

Puts the last finished backup in DIR into the directory MEDIABUCKET_DATA, which must be empty or not exist: nothing is
ever replaced. No server may run on it. Every byte is hashed on its way; items whose bytes are not whole in the backup
are reported, and answer 500. Uploads in pieces that were not finished are ended. Exit code 1 if bytes were missing.`,

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
      print(`Restored ${tellCopied(result)} to ${config.data}.`)
      for (const line of tellFaulty(result)) print(line)
      if (result.faulty.length > 0) process.exitCode = 1
    } finally {
      progress.end()
      lock.release()
    }
  },
}
