import { newSigningKey } from '../access/new-signing-key.ts'
import { parse } from './arguments.ts'
import type { Command } from './command.ts'
import { withCatalog } from './open-catalog.ts'

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
