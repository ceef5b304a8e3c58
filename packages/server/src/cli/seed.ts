import { issueToken } from '../access/issue-token.ts'
import { bucketNameRule, isBucketName } from '../core/bucket-name.ts'
import { defaultScopes } from '../core/scopes.ts'
import { seedBucket } from '../engines.ts'
import { parse } from './arguments.ts'
import { createItemProgress } from './client/progress-bars.ts'
import { type Command, UsageError } from './command.ts'
import { withCatalog } from './open-catalog.ts'

export const seed: Command = {
  help: `Usage: mediabucket seed --items N [--delete-every K] [--pictures] [--bucket NAME]

Adds N items without bytes to a bucket, and deletes every K-th of them. Works while the service is running. Creates a token,
and prints one line of JSON on standard output: {"bucket":…,"token":…,"total":…}.

Options:
  --items N         How many items to add.
  --delete-every K  Delete every K-th of them. Default: none.
  --pictures        Add small generated pictures, of about 300 bytes each, instead of items without bytes.
  --bucket NAME     The bucket; it is created if it does not exist ["seeded"]. ${bucketNameRule}`,

  async run(args, { config, print }) {
    const { values } = parse('seed', {
      args: [...args],
      options: {
        items: { type: 'string' },
        'delete-every': { type: 'string' },
        pictures: { type: 'boolean', default: false },
        bucket: { type: 'string', default: 'seeded' },
      },
    })
    const { bucket } = values
    if (!isBucketName(bucket))
      throw new UsageError(`"${bucket}" is not a valid bucket name. ${bucketNameRule}`)
    const items = count('--items', values.items)
    const deleteEvery =
      values['delete-every'] === undefined ? null : count('--delete-every', values['delete-every'])

    const progress = createItemProgress('Added')
    const { total } = await seedBucket(config, {
      bucket,
      items,
      pictures: values.pictures,
      ...(deleteEvery === null ? {} : { deleteEvery }),
      onProgress: progress.show,
    }).finally(progress.end)
    const { token } = await withCatalog(config, (catalog) =>
      issueToken(catalog, { bucket, name: 'seed', scopes: defaultScopes, expiresAt: null, now: Date.now() }),
    )
    print(JSON.stringify({ bucket, token, total }))
  },
}

function count(option: string, text: string | undefined): number {
  if (text === undefined || !/^[1-9]\d{0,9}$/.test(text)) {
    throw new UsageError(
      `seed needs ${option} with a whole number of at least 1${text === undefined ? '' : `, not "${text}"`}`,
    )
  }
  return Number(text)
}
