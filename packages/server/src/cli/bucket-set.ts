import { parse } from './arguments.ts'
import { type Command, CommandError, UsageError } from './command.ts'
import { withCatalog } from './open-catalog.ts'
import { formatQuota, quotaHelp, quotaOptions, readQuota } from './quota-options.ts'

export const bucketSet: Command = {
  summary: 'Limit what a bucket may hold.',
  help: `Usage: mediabucket bucket set NAME [--max-items N|none] [--max-bytes SIZE|none]

Works beside a running server; the next upload is held to it. What is in the bucket stays, even beyond the limits.

Options:
${quotaHelp}`,

  async run(args, { config, report }) {
    const { values, positionals } = parse('bucket set', {
      args: [...args],
      allowPositionals: true,
      options: quotaOptions,
    })
    const [name, ...more] = positionals
    if (name === undefined || more.length > 0)
      throw new UsageError('bucket set takes one NAME; see: mediabucket bucket list')
    const quota = readQuota(values)
    if (Object.keys(quota).length === 0)
      throw new UsageError('bucket set needs --max-items, --max-bytes or both')
    const known = await withCatalog(config, (catalog) => catalog.setQuota(name, quota))
    if (!known) throw new CommandError(`there is no bucket "${name}"; see: mediabucket bucket list`)
    report(`The bucket "${name}" may hold ${formatQuota(quota)}.`)
  },
}
