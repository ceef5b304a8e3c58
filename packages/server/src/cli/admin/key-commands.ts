import { parse, UsageError } from '@mediabucket/cli/command'
import { jsonLine, table } from '@mediabucket/cli/terminal'
import type { KeyManager, SigningKey } from '@mediabucket/client'
import { listKeys, removeKey, rotateKeys } from '../../access/key-operations.ts'
import { type AdministrationContext, administer, administrationCommand } from './administration.ts'

/** The keys of the service, as the command reaches it. */
const withKeys = (context: AdministrationContext, work: (keys: KeyManager) => Promise<void>): Promise<void> =>
  administer(
    context,
    ({ service }) => work(service.keys),
    (catalog) =>
      work({
        list: () => listKeys(catalog),
        rotate: () => rotateKeys(catalog),
        remove: (id) => removeKey(catalog, id),
      }),
  )

export const keysList = administrationCommand({
  help: `Usage: mediabucket keys list [--json]

Prints a table; its first column is the id of the key. The newest key signs new links, the others only verify earlier ones. The
header is printed on a terminal only.

Options:
  --json  Print one JSON object per line.`,

  async run(args, context) {
    const { print, report } = context
    const { values } = parse('keys list', { args: [...args], options: { json: { type: 'boolean' } } })
    await withKeys(context, async (keys) => {
      const listed = await keys.list()
      if (values.json) for (const key of listed) print(jsonLine(key))
      else if (listed.length === 0) report('There are no keys. The first link creates one.')
      else for (const line of table(columns, listed, { header: process.stdout.isTTY })) print(line)
    })
  },
})

const columns = [
  { header: 'ID', cell: ({ id }: SigningKey) => id },
  { header: 'STATE', cell: ({ state }: SigningKey) => state },
  { header: 'CREATED', cell: ({ created_at }: SigningKey) => created_at },
]

export const keysRotate = administrationCommand({
  help: `Usage: mediabucket keys rotate

Prints the id of the new key. Links of earlier keys stay valid until they expire, or until their key is removed with
\`mediabucket keys remove\`. Works while the service is running.`,

  async run(args, context) {
    parse('keys rotate', { args: [...args], options: {} })
    await withKeys(context, async (keys) => {
      const { id } = await keys.rotate()
      context.report(
        'Created a key, which signs all new links. Links of earlier keys stay valid until they expire.',
      )
      context.print(id)
    })
  },
})

export const keysRemove = administrationCommand({
  help: `Usage: mediabucket keys remove ID

ID is the first column of \`mediabucket keys list\`. All links that the key has signed are invalid from then on, and the secret
access keys for S3 that were made with it: \`mediabucket token keys\` prints new ones. If it is the newest key, a new key is created, so that no older key signs again; if no key is left, the next link creates one. Works while
the service is running.`,

  async run(args, context) {
    const { positionals } = parse('keys remove', { args: [...args], allowPositionals: true, options: {} })
    const [id, ...more] = positionals
    if (id === undefined || more.length > 0)
      throw new UsageError('keys remove takes one ID. See: mediabucket keys list')
    await withKeys(context, async (keys) => {
      await keys.remove(id)
      context.report(
        `Removed the key ${id}. The links that it has signed are no longer valid, nor the secret access keys for S3 that were made with it.`,
      )
    })
  },
})
