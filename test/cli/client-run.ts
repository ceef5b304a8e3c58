import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { basics, bin, runCommand, type TestServer } from '../harness/server.ts'

/** The result of a command. */
export interface CommandResult {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

type Service = Pick<TestServer, 'url' | 'token'>

const settingsOf = ({ url, token }: Service) => ({
  MEDIABUCKET_URL: url,
  MEDIABUCKET_TOKEN: token,
  // Not in the home directory of the user; entries are separated by token.
  XDG_STATE_HOME: join(tmpdir(), 'mediabucket-test-state'),
  XDG_CONFIG_HOME: join(tmpdir(), 'mediabucket-test-config'),
})

/** Runs a client command with these settings only. */
export async function runClient(service: Service, ...args: string[]): Promise<CommandResult> {
  return await runCommand(args, settingsOf(service)).then(
    (output) => ({ code: 0, ...output }),
    (failure: CommandResult) => failure,
  )
}

/** The lines of an output, without its last line break. */
export const lines = (text: string): string[] => text.trimEnd().split('\n')

/** The command line and environment, for tests that start the process themselves. */
export const commandLine = (service: Service, ...args: string[]) => ({
  command: [process.execPath, bin, ...args],
  env: { ...basics, ...settingsOf(service) },
})
