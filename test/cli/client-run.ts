import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { basics, bin, runCommand, type TestServer } from '../harness/server.ts'
import { type CommandResult, runWarm } from './warm-process.ts'

export type { CommandResult }

type Service = Pick<TestServer, 'url' | 'token'>

const settingsOf = ({ url, token }: Service) => ({
  MEDIABUCKET_URL: url,
  MEDIABUCKET_TOKEN: token,
  // Not in the home directory of the user; entries are separated by token.
  XDG_STATE_HOME: join(tmpdir(), 'mediabucket-test-state'),
  XDG_CONFIG_HOME: join(tmpdir(), 'mediabucket-test-config'),
})

/** Runs a client command with these settings only, in a process that also ran others (warm-process.ts). */
export const runClient = (service: Service, ...args: string[]): Promise<CommandResult> =>
  runWarm(args, settingsOf(service))

/** As `runClient`, in a process of its own. A second upload of the same files needs one: the command line identifies an upload by its process. */
export const runAlone = (service: Service, ...args: string[]): Promise<CommandResult> =>
  runCommand(args, settingsOf(service)).then(
    (output) => ({ code: 0, ...output }),
    ({ code, stdout, stderr }: CommandResult) => ({ code, stdout, stderr }),
  )

/** The lines of an output, without its last line break. */
export const lines = (text: string): string[] => text.trimEnd().split('\n')

/** The command line and environment, for tests that start the process themselves. */
export const commandLine = (service: Service, ...args: string[]) => ({
  command: [process.execPath, bin, ...args],
  env: { ...basics, ...settingsOf(service) },
})
