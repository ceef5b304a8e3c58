import { parse } from './arguments.ts'
import { type Command, UsageError } from './command.ts'
import { unknownBucket, withCatalog } from './open-catalog.ts'
import { formatQuota, quotaHelp, quotaOptions, readQuota } from './quota-options.ts'

export const bucketSet: Command = {
  summary: 'Set the quota of a bucket.',
  help: `Usage: mediabucket bucket set NAME [--max-items N|none] [--max-bytes SIZE|none]

Works while the service is running, and applies from the next upload. Existing items stay, even if they exceed the quota.

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
      throw new UsageError('bucket set takes one NAME. See: mediabucket bucket list')
    const quota = readQuota(values)
    if (Object.keys(quota).length === 0)
      throw new UsageError('bucket set needs --max-items, --max-bytes or both')
    const known = await withCatalog(config, (catalog) => catalog.setQuota(name, quota))
    if (!known) throw unknownBucket(name)
    report(`The quota of the bucket "${name}" is now ${formatQuota(quota)}.`)
  },
}
