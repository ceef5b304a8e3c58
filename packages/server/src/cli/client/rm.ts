import { parse } from '../arguments.ts'
import { CommandError, exitCodes, UsageError } from '../command.ts'
import { formatCount } from '../table.ts'
import { clientCommand } from './client-command.ts'
import { itemReference } from './item-reference.ts'

export const rm = clientCommand({
  summary: 'Delete items from the bucket of a service.',
  help: `Usage: mediabucket rm ID|URL …

Deletes each item permanently, without confirmation. Items that do not exist are reported, the others are deleted, and the
exit code is ${exitCodes.notFound}.`,

  read(args) {
    const { positionals } = parse('rm', { args: [...args], allowPositionals: true, options: {} })
    if (positionals.length === 0)
      throw new UsageError('rm takes the IDs or URLs of items. See: mediabucket ls')
    return positionals.map(itemReference)
  },

  async run(references, { client, report, interrupted, explain }) {
    let missing = 0
    for (const reference of references) {
      try {
        await client.delete(reference, { signal: interrupted })
        report(`Deleted ${reference}`)
      } catch (error) {
        const explained = interrupted.aborted ? null : explain(error)
        if (!(explained instanceof CommandError) || explained.exitCode !== exitCodes.notFound) throw error
        missing += 1
        report(`mediabucket: ${reference}: ${explained.message}`)
      }
    }
    if (missing > 0)
      throw new CommandError(
        `${missing} of ${formatCount(references.length, 'item')} ${missing === 1 ? 'does' : 'do'} not exist`,
        exitCodes.notFound,
      )
  },
})
