import { hasData, holdRemovals, openAudit, openBlobs } from '../engines.ts'
import { backUp } from '../upkeep/back-up.ts'
import { openBackupDirectory } from '../upkeep/backup-directory.ts'
import type { Copied } from '../upkeep/copy-blobs.ts'
import { parse } from './arguments.ts'
import { type Command, CommandError, UsageError } from './command.ts'
import { showProgress } from './progress.ts'

export const backup: Command = {
  summary: 'Copy everything to a directory, while serving.',
  help: `Usage: mediabucket backup DIR

Copies the data to the directory DIR, which is made if need be and must be outside of the data: rows and bytes as of
one moment, synced. Works beside a running server; what is deleted meanwhile stays on the disk until the backup ends.
A second backup to the same DIR copies only the bytes that are new, and takes the place of the first at once, when it
is whole: one that is interrupted leaves the first as it was. Every byte is hashed on its way, and bytes that are not
those that were sent are reported and not copied. Exit code 1 if there were such.

The bytes of items that were deleted since stay in DIR. To be rid of them, begin a new one.`,

  async run(args, { config, print }) {
    const { positionals } = parse('backup', { args: [...args], allowPositionals: true, options: {} })
    const [path, ...more] = positionals
    if (!path || more.length > 0) throw new UsageError('backup takes one DIR to copy to')
    if (!hasData(config))
      throw new CommandError(`there are no data in ${config.data}; set MEDIABUCKET_DATA to where they are`)
    const directory = await openBackupDirectory(path, config.data)
    const hold = holdRemovals(config)
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
      print(`Backed up ${tellCopied(result)} to ${path}.`)
      for (const line of tellFaulty(result)) print(line)
      if (result.faulty.length > 0) process.exitCode = 1
    } finally {
      progress.end()
      await audit.close()
      hold.release()
    }
  },
}

export const tellCopied = ({ items, copied, bytes, present }: Copied): string =>
  `${items} items (${copied} copied with ${bytes} bytes, ${present} there already)`

/** How many items are named. */
const shown = 20

export function* tellFaulty({ faulty }: Copied): Generator<string> {
  if (faulty.length === 0) return
  yield `${faulty.length} items without their bytes, which were not what was sent or not there:`
  for (const { id, what } of faulty.slice(0, shown)) yield `  ${id} ${what}`
  if (faulty.length > shown) yield `  and ${faulty.length - shown} more`
  yield '  → mediabucket fsck --verify-bytes tells more.'
}
