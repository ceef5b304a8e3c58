import { CommandError, exitCodes, parse, UsageError } from '@mediabucket/cli/command'
import { jsonLine, table } from '@mediabucket/cli/terminal'
import { newSigningKey } from '../../access/signed-links.ts'
import type { SigningKey } from '../../storage/catalog/access/keys.ts'
import type { Catalog } from '../../storage/catalog/catalog.ts'
import type { Command } from '../command.ts'
import { withCatalog } from './open-catalog.ts'

export const keysList: Command = {
  help: `Usage: mediabucket keys list [--json]

Prints a table; its first column is the id of the key. The newest key signs new links, the others only verify earlier ones. The
header is printed on a terminal only.

Options:
  --json  Print one JSON object per line.`,

  async run(args, { config, print, report }) {
    const { values } = parse('keys list', { args: [...args], options: { json: { type: 'boolean' } } })
    const keys = await withCatalog(config, (catalog) => catalog.signingKeys())
    const newest = keys.at(-1)
    const stateOf = (key: SigningKey) => (key === newest ? 'signs' : 'verifies')
    if (values.json) {
      for (const key of keys) print(jsonLine({ id: key.id, state: stateOf(key), created_at: timeOf(key) }))
      return
    }
    if (keys.length === 0) return report('There are no keys. The first link creates one.')
    const columns = [
      { header: 'ID', cell: ({ id }: SigningKey) => id },
      { header: 'STATE', cell: stateOf },
      { header: 'CREATED', cell: timeOf },
    ]
    for (const line of table(columns, keys, { header: process.stdout.isTTY })) print(line)
  },
}

const timeOf = ({ createdAt }: SigningKey) => new Date(createdAt).toISOString()

export const keysRotate: Command = {
  help: `Usage: mediabucket keys rotate

Prints the id of the new key. Links of earlier keys stay valid until they expire, or until their key is removed with
\`mediabucket keys remove\`. Works while the service is running.`,

  async run(args, { config, print, report }) {
    parse('keys rotate', { args: [...args], options: {} })
    const key = newSigningKey(Date.now())
    await withCatalog(config, (catalog) => catalog.addSigningKey(key, false))
    report('Created a key, which signs all new links. Links of earlier keys stay valid until they expire.')
    print(key.id)
  },
}

export const keysRemove: Command = {
  help: `Usage: mediabucket keys remove ID

ID is the first column of \`mediabucket keys list\`. All links that the key has signed are invalid from then on. If it
is the newest key, a new key is created, so that no older key signs again; if no key is left, the next link creates one. Works while
the service is running.`,

  async run(args, { config, report }) {
    const { positionals } = parse('keys remove', { args: [...args], allowPositionals: true, options: {} })
    const [id, ...more] = positionals
    if (id === undefined || more.length > 0)
      throw new UsageError('keys remove takes one ID. See: mediabucket keys list')
    if (!(await withCatalog(config, (catalog) => removeKey(catalog, id))))
      throw new CommandError(`there is no key "${id}". See: mediabucket keys list`, exitCodes.notFound)
    report(`Removed the key ${id}. The links that it has signed are no longer valid.`)
  },
}

/** Returns false if there is no such key. A new key replaces the newest one before its removal, so that no older key signs in between. */
async function removeKey(
  catalog: Pick<Catalog, 'signingKeys' | 'addSigningKey' | 'removeSigningKey'>,
  id: string,
): Promise<boolean> {
  const keys = await catalog.signingKeys()
  if (keys.length > 1 && keys.at(-1)?.id === id) await catalog.addSigningKey(newSigningKey(Date.now()), false)
  return await catalog.removeSigningKey(id)
}
