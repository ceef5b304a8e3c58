import { ensureSigningKey } from '../access/sign-links.ts'
import { bucketNameRule, isBucketName } from '../core/bucket-name.ts'
import { parse } from './arguments.ts'
import {
  bucketHelp,
  bucketOptions,
  bucketUsage,
  publicBucketNote,
  readBucketSettings,
} from './bucket-options.ts'
import { type Command, CommandError, UsageError } from './command.ts'
import { withNewCatalog } from './open-catalog.ts'

export const bucketCreate: Command = {
  help: `Usage: mediabucket bucket create NAME ${bucketUsage}

Creates an empty bucket; works while the service is running. To create a token for it, run
\`mediabucket token create --bucket NAME\`. ${bucketNameRule}

Options:
${bucketHelp}`,

  async run(args, { config, report }) {
    const { values, positionals } = parse('bucket create', {
      args: [...args],
      allowPositionals: true,
      options: bucketOptions,
    })
    const [name, ...more] = positionals
    if (name === undefined || more.length > 0)
      throw new UsageError('bucket create takes one NAME. See: mediabucket bucket create --help')
    if (!isBucketName(name)) throw new UsageError(`"${name}" is not a valid bucket name. ${bucketNameRule}`)
    const settings = readBucketSettings(values)
    const isCreated = await withNewCatalog({ config, report }, async (catalog) => {
      const now = Date.now()
      if (!(await catalog.createBucket(name, settings, now))) return false
      if (settings.isPrivate) await ensureSigningKey(catalog, now)
      return true
    })
    if (!isCreated)
      throw new CommandError(`the bucket "${name}" already exists. See: mediabucket bucket list`)
    report(`Created the bucket "${name}". Create a token for it: mediabucket token create --bucket ${name}`)
    if (settings.signedPages && !settings.isPrivate) report(publicBucketNote(name))
  },
}
