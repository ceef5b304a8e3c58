import { parse } from '../arguments.ts'
import { clientCommand } from './client-command.ts'

export const trashEmpty = clientCommand({
  help: `Usage: mediabucket trash empty

Deletes the items in the trash of the bucket permanently, without confirmation.`,

  read: (args) => parse('trash empty', { args: [...args], options: {} }),

  async run(_arguments, { client, report, interrupted }) {
    await client.emptyTrash({ signal: interrupted })
    report('Emptied the trash.')
  },
})
