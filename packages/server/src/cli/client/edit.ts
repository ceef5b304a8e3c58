import { parse } from '../arguments.ts'
import { UsageError } from '../command.ts'
import { clientCommand } from './client-command.ts'
import { faultIn } from './explain-client-error.ts'
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
    await client.update(reference, changes, { signal: interrupted }).catch((error: unknown) => {
      throw explainTexts(error, Object.keys(changes)) ?? error
    })
    report(`Edited ${reference}`)
  },
})

/** The error of texts that the service refuses, in terms of the options; null for any other error. */
function explainTexts(error: unknown, members: readonly string[]): UsageError | null {
  const refused = members.flatMap((member) => {
    // Only the text of the fault has the limits.
    const [, accepted] = /^Null, or a string (.*)\.$/.exec(faultIn(error, member) ?? '') ?? []
    return accepted === undefined ? [] : [`--${member.replace('_', '-')} takes a text ${accepted}`]
  })
  return refused.length === 0 ? null : new UsageError(refused.join('. '))
}
