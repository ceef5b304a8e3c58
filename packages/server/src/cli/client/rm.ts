import { parse } from '../arguments.ts'
import { CommandError, UsageError } from '../command.ts'
import { formatCount } from '../table.ts'
import { clientCommand } from './client-command.ts'
import { exitCodes } from './explain-client-error.ts'
import { itemReference } from './item-reference.ts'

export const rm = clientCommand({
  summary: 'Delete items from the bucket of a service.',
  help: `Usage: mediabucket rm ID|URL …

Deletes each item for good. An item that is not there does not keep the others from being deleted; it is told, and
the exit code is ${exitCodes.missing}. Nothing is asked before.`,

  read(args) {
    const { positionals } = parse('rm', { args: [...args], allowPositionals: true, options: {} })
    if (positionals.length === 0)
      throw new UsageError('rm takes the IDs or URLs of items; see: mediabucket ls')
    return positionals.map(itemReference)
  },

  async run(references, { client, report, interrupted, explain }) {
    let missing = 0
    for (const reference of references) {
      try {
        await client.delete(reference, { signal: interrupted })
        report(`Deleted ${reference}`)
      } catch (error) {
        const told = interrupted.aborted ? null : explain(error)
        if (!(told instanceof CommandError) || told.exitCode !== exitCodes.missing) throw error
        missing += 1
        report(`mediabucket: ${reference}: ${told.message}`)
      }
    }
    if (missing > 0)
      throw new CommandError(
        `${missing} of ${formatCount(references.length, 'item')} ${missing === 1 ? 'was' : 'were'} not there`,
        exitCodes.missing,
      )
  },
})
