import type { SigningKey } from '../catalog/keys.ts'
import { parse } from './arguments.ts'
import { jsonLine } from './client/terminal-text.ts'
import type { Command } from './command.ts'
import { withCatalog } from './open-catalog.ts'
import { table } from './table.ts'

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
