import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { Type } from 'typebox'
import { Value } from 'typebox/value'
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

/** Calls `main` once for each line of the arguments, as bin/mediabucket.js does, and prints the results as JSON. */
const callMain = `
const [module, calls] = process.argv.slice(1)
const { main } = await import(module)
const results = []
for (const args of JSON.parse(calls)) {
  const printed = { log: [], error: [] }
  for (const name of ['log', 'error']) console[name] = (text) => void printed[name].push(text + '\\n')
  process.exitCode = 0
  await main(args)
  results.push({ code: process.exitCode, stdout: printed.log.join(''), stderr: printed.error.join('') })
}
process.exitCode = 0
process.stdout.write(JSON.stringify(results))`

const Results = Type.Array(
  Type.Object({ code: Type.Integer(), stdout: Type.String(), stderr: Type.String() }),
)

/** The results of calls that end before they connect to a service, all from one process. */
export async function refusedCalls(
  service: Service,
  calls: readonly (readonly string[])[],
): Promise<readonly CommandResult[]> {
  // A copy of the program that has the sources is run from them: its bundle may be older.
  const sources = resolve(bin, '../../src/cli/main.ts')
  const module = pathToFileURL(existsSync(sources) ? sources : resolve(bin, '../../dist/main.js')).href
  const { stdout } = await promisify(execFile)(
    process.execPath,
    ['--input-type=module', '-e', callMain, module, JSON.stringify(calls)],
    { env: { ...basics, ...settingsOf(service) } },
  )
  return Value.Parse(Results, JSON.parse(stdout))
}
