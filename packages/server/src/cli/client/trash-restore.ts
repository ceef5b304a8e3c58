import { parse } from '../arguments.ts'
import { CommandError, exitCodes, UsageError } from '../command.ts'
import { formatCount } from '../table.ts'
import { clientCommand } from './client-command.ts'
import { itemReference } from './item-reference.ts'

export const trashRestore = clientCommand({
  help: `Usage: mediabucket trash restore ID|URL …

Restores items from the trash with their earlier URLs and places. Items that are not in the trash are reported, the others are
restored, and the exit code is ${exitCodes.notFound}.`,

  read(args) {
    const { positionals } = parse('trash restore', { args: [...args], allowPositionals: true, options: {} })
    if (positionals.length === 0)
      throw new UsageError('trash restore takes the IDs or URLs of items. See: mediabucket trash list')
    return positionals.map(itemReference)
  },

  async run(references, { client, report, interrupted }) {
    const { restored, missing } = await client.restore(references, { signal: interrupted })
    for (const reference of restored) report(`Restored ${reference}`)
    for (const reference of missing) report(`mediabucket: ${reference}: The trash has no such item.`)
    if (missing.length > 0)
      throw new CommandError(
        `${missing.length} of ${formatCount(references.length, 'item')} ${missing.length === 1 ? 'is' : 'are'} not in the trash. See: mediabucket trash list`,
        exitCodes.notFound,
      )
  },
})
