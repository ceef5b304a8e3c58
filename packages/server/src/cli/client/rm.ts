import { parse } from '../arguments.ts'
import { CommandError, exitCodes, UsageError } from '../command.ts'
import { formatCount } from '../table.ts'
import { clientCommand } from './client-command.ts'
import { itemReference } from './item-reference.ts'

/** Items per request, and so per report. */
const requestLength = 500

export const rm = clientCommand({
  help: `Usage: mediabucket rm ID|URL …

Deletes each item without confirmation: permanently, or into the trash if the bucket has one. Items that do not exist are
reported, the others are deleted, and the exit code is ${exitCodes.notFound}.`,

  read(args) {
    const { positionals } = parse('rm', { args: [...args], allowPositionals: true, options: {} })
    if (positionals.length === 0)
      throw new UsageError('rm takes the IDs or URLs of items. See: mediabucket ls')
    return positionals.map(itemReference)
  },

  async run(references, { client, report, interrupted }) {
    let missing = 0
    for (let start = 0; start < references.length; start += requestLength) {
      const result = await client.deleteMany(references.slice(start, start + requestLength), {
        signal: interrupted,
      })
      for (const reference of result.deleted) report(`Deleted ${reference}`)
      for (const reference of result.missing) report(`mediabucket: ${reference}: There is no such item.`)
      missing += result.missing.length
    }
    if (missing > 0)
      throw new CommandError(
        `${missing} of ${formatCount(references.length, 'item')} ${missing === 1 ? 'does' : 'do'} not exist. See: mediabucket ls`,
        exitCodes.notFound,
      )
  },
})
