import { parse } from './arguments.ts'
import { formatSize } from './client/terminal-text.ts'
import { type Command, UsageError } from './command.ts'
import { unknownBucket, withCatalog } from './open-catalog.ts'
import { formatQuota, quotaHelp, quotaOptions, readQuota } from './quota-options.ts'
import { formatCount } from './table.ts'

export const bucketSet: Command = {
  summary: 'Set the quota and the trash of a bucket.',
  help: `Usage: mediabucket bucket set NAME [--max-items N|none] [--max-bytes SIZE|none] [--trash-days N]

Works while the service is running, and applies from the next upload and the next delete. Existing items stay, even if they exceed the quota,
and so do items that are in the trash, until the time that they had.

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
      throw new UsageError(
        'bucket set needs --max-items, --max-bytes or --trash-days. See: mediabucket bucket set --help',
      )
    const bucket = await withCatalog(config, async (catalog) =>
      (await catalog.setQuota(name, quota)) ? await catalog.bucketNamed(name) : null,
    )
    if (bucket === null) throw unknownBucket(name)
    report(`Quota of the bucket "${name}": ${formatQuota(quota)}.`)
    const { items, bytes } = bucket
    if (items > (quota.maxItems ?? items) || bytes > (quota.maxBytes ?? bytes))
      report(
        `The bucket already holds more: ${formatCount(items, 'item')}, ${formatSize(bytes)}. They stay; uploads are refused until enough items are deleted.`,
      )
  },
}
