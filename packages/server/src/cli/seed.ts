import { issueToken } from '../access/issue-token.ts'
import { bucketNameRule, isBucketName } from '../core/bucket-name.ts'
import { defaultScopes } from '../core/scopes.ts'
import { seedBucket } from '../engines.ts'
import { parse } from './arguments.ts'
import { type Command, UsageError } from './command.ts'
import { withNewCatalog } from './open-catalog.ts'

export const seed: Command = {
  summary: 'Fill a bucket with rows to try a size; they have no bytes.',
  help: `Usage: mediabucket seed --items N [--delete-every K] [--bucket NAME]

Adds N rows without bytes to a bucket, then deletes every K-th of them. Works beside a running server.
The last line on standard output is JSON: {"bucket":…,"token":…,"total":…}.

Options:
  --items N         How many rows to add.
  --delete-every K  Delete every K-th of them again. Without it, none.
  --bucket NAME     The bucket, made if need be ["seeded"]. ${bucketNameRule}`,

  async run(args, { config, print, report }) {
    const { values } = parse('seed', {
      args: [...args],
      options: {
        items: { type: 'string' },
        'delete-every': { type: 'string' },
        bucket: { type: 'string', default: 'seeded' },
      },
    })
    const { bucket } = values
    if (!isBucketName(bucket)) throw new UsageError(`"${bucket}" is no name for a bucket. ${bucketNameRule}`)
    const items = count('--items', values.items)
    const deleteEvery =
      values['delete-every'] === undefined ? null : count('--delete-every', values['delete-every'])

    const { total } = await seedBucket(config, {
      bucket,
      items,
      ...(deleteEvery === null ? {} : { deleteEvery }),
      onProgress: (done, of) => report(`seeded ${done} of ${of}`),
    })
    const { token } = await withNewCatalog(config, (catalog) =>
      issueToken(catalog, { bucket, name: 'seed', scopes: defaultScopes, expiresAt: null, now: Date.now() }),
    )
    print(JSON.stringify({ bucket, token, total }))
  },
}

function count(option: string, text: string | undefined): number {
  if (text === undefined || !/^[1-9]\d{0,9}$/.test(text)) {
    throw new UsageError(
      `seed needs ${option} with a whole number from 1 up${text === undefined ? '' : `, not "${text}"`}`,
    )
  }
  return Number(text)
}
