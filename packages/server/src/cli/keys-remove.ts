import { newSigningKey } from '../access/new-signing-key.ts'
import type { KeyCatalog } from '../catalog/keys.ts'
import { parse } from './arguments.ts'
import { type Command, CommandError, exitCodes, UsageError } from './command.ts'
import { withCatalog } from './open-catalog.ts'

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
async function removeKey(catalog: KeyCatalog, id: string): Promise<boolean> {
  const keys = await catalog.signingKeys()
  if (keys.length > 1 && keys.at(-1)?.id === id) await catalog.addSigningKey(newSigningKey(Date.now()), false)
  return await catalog.removeSigningKey(id)
}
