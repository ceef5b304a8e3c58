import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { basics, bin, runCommand, type TestServer } from '../harness/server.ts'

/** What a command did, whatever its exit code. */
export interface Ran {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

type Service = Pick<TestServer, 'url' | 'token'>

const settingsOf = ({ url, token }: Service) => ({
  MEDIABUCKET_URL: url,
  MEDIABUCKET_TOKEN: token,
  // Not in the home of whoever runs the tests; what is kept there is told apart by its token.
  XDG_STATE_HOME: join(tmpdir(), 'mediabucket-test-state'),
})

/** Runs a command that talks to a service, with nothing but these settings. */
export async function runClient(service: Service, ...args: string[]): Promise<Ran> {
  return await runCommand(args, settingsOf(service)).then(
    (output) => ({ code: 0, ...output }),
    (failure: Ran) => failure,
  )
}

/** The same for those who start it themselves. */
export const commandLine = (service: Service, ...args: string[]) => ({
  command: [process.execPath, bin, ...args],
  env: { ...basics, ...settingsOf(service) },
})
