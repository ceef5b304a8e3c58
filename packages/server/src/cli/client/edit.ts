import { parse } from '../arguments.ts'
import { UsageError } from '../command.ts'
import { clientCommand } from './client-command.ts'
import { itemReference } from './item-reference.ts'

export const edit = clientCommand({
  help: `Usage: mediabucket edit ID|URL [--filename NAME] [--alt-text TEXT] [--caption TEXT]

Changes the given texts of the item and no others. An empty text removes the text.

Options:
  --filename NAME  The name, under which browsers save the file. Its type and its URL stay as they are.
  --alt-text TEXT  A text that replaces the picture where it is not shown.
  --caption TEXT   A text to show with the item.`,

  read(args) {
    const text = { type: 'string' } as const
    const { values, positionals } = parse('edit', {
      args: [...args],
      allowPositionals: true,
      options: { filename: text, 'alt-text': text, caption: text },
    })
    const [reference, ...others] = positionals
    if (reference === undefined || others.length > 0)
      throw new UsageError('edit takes one ID or URL of an item. See: mediabucket ls')
    const changes = Object.fromEntries(
      Object.entries(values).map(([name, value]) => [name.replace('-', '_'), value === '' ? null : value]),
    )
    if (Object.keys(changes).length === 0)
      throw new UsageError('edit takes --filename, --alt-text or --caption. See: mediabucket edit --help')
    return { reference: itemReference(reference), changes }
  },

  async run({ reference, changes }, { client, report, interrupted }) {
    await client.update(reference, changes, { signal: interrupted })
    report(`Edited ${reference}`)
  },
})
