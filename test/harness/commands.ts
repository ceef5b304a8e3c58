import { bucketSet } from '../../packages/server/src/cli/admin/bucket-commands.ts'
import { fsck } from '../../packages/server/src/cli/admin/fsck-command.ts'
import { tokenCreate, tokenRevoke } from '../../packages/server/src/cli/admin/token-commands.ts'
import { readConfig } from '../../packages/server/src/service/config.ts'
import { databaseSettings } from './database.ts'

const commands = { fsck, 'token create': tokenCreate, 'token revoke': tokenRevoke, 'bucket set': bucketSet }

/** Runs a command in this process while a server is running. This saves the start of a process. */
export async function runHere(
  data: string,
  command: keyof typeof commands,
  ...args: string[]
): Promise<{ printed: string; reported: string }> {
  const [printed, reported]: [string[], string[]] = [[], []]
  await commands[command].run(args, {
    ...readConfig({ ...(await databaseSettings(data)), MEDIABUCKET_DATA: data }),
    print: (text) => void printed.push(text),
    report: (text) => void reported.push(text),
  })
  return { printed: printed.join('\n'), reported: reported.join('\n') }
}
