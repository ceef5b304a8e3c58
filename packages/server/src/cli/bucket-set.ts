import { ensureSigningKey } from '../access/sign-links.ts'
import { parse } from './arguments.ts'
import {
  bucketHelp,
  bucketOptionList,
  bucketOptions,
  bucketUsage,
  formatBucketSettings,
  publicBucketNote,
  readBucketSettings,
} from './bucket-options.ts'
import { formatSize } from './client/terminal-text.ts'
import { type Command, UsageError } from './command.ts'
import { unknownBucket, withCatalog } from './open-catalog.ts'
import { formatCount } from './table.ts'

export const bucketSet: Command = {
  help: `Usage: mediabucket bucket set NAME ${bucketUsage}

Works while the service is running. --private and --signed-pages apply from the next request, the other settings from the next upload and
the next delete. Existing items stay, even if they exceed the quota, and so do items that are in the trash, until the time that they had.

Options:
${bucketHelp}`,

  async run(args, { config, report }) {
    const { values, positionals } = parse('bucket set', {
      args: [...args],
      allowPositionals: true,
      options: bucketOptions,
    })
    const [name, ...more] = positionals
    if (name === undefined || more.length > 0)
      throw new UsageError('bucket set takes one NAME. See: mediabucket bucket list')
    const settings = readBucketSettings(values)
    if (Object.keys(settings).length === 0)
      throw new UsageError(`bucket set needs ${bucketOptionList}. See: mediabucket bucket set --help`)
    const bucket = await withCatalog(config, async (catalog) => {
      if (!(await catalog.setBucket(name, settings))) return null
      if (settings.isPrivate) await ensureSigningKey(catalog, Date.now())
      return await catalog.bucketNamed(name)
    })
    if (bucket === null) throw unknownBucket(name)
    report(`Settings of the bucket "${name}": ${formatBucketSettings(settings)}.`)
    const { items, bytes } = bucket
    if (settings.signedPages && !bucket.isPrivate) report(publicBucketNote(name))
    if (items > (settings.maxItems ?? items) || bytes > (settings.maxBytes ?? bytes))
      report(
        `The bucket already holds more: ${formatCount(items, 'item')}, ${formatSize(bytes)}. They stay; uploads are refused until enough items are deleted.`,
      )
  },
}
