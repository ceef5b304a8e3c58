import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { Type } from 'typebox'
import { Value } from 'typebox/value'
import { basics, bin } from '../harness/server.ts'
import { atWorkerEnd } from '../harness/worker-end.ts'

/** The result of a command. */
export interface CommandResult {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

/**
 * For each message, calls `main` as bin/mediabucket.js does, with an environment, arguments and outputs of its own. It is loaded once: nine
 * tenths of the CPU time of a command are the start of its process.
 */
const program = `
import { Writable } from 'node:stream'
const [module, bin] = process.argv.slice(1)
const { main } = await import(module)
// Those of fetch, which would stay open for the next command.
async function closeConnections() {
  for (const symbol of Object.getOwnPropertySymbols(globalThis)) {
    const dispatcher = symbol.description.startsWith('undici.globalDispatcher') ? globalThis[symbol] : null
    if (dispatcher?.constructor.name !== 'Agent') continue
    globalThis[symbol] = new dispatcher.constructor()
    await dispatcher.destroy()
  }
}
process.once('disconnect', () => process.exit())
process.on('message', async ({ args, env }) => {
  for (const name of Object.keys(process.env)) delete process.env[name]
  Object.assign(process.env, env)
  process.argv = [process.execPath, bin, ...args]
  process.exitCode = undefined
  const result = {}
  for (const [name, method] of [['stdout', 'log'], ['stderr', 'error']]) {
    const chunks = []
    const write = (chunk, _encoding, done) => (chunks.push(chunk), done())
    Object.defineProperty(process, name, { configurable: true, value: new Writable({ write }) })
    console[method] = (text) => void chunks.push(Buffer.from(text + '\\n'))
    result[name] = () => Buffer.concat(chunks).toString()
  }
  await main(args)
  await closeConnections()
  process.send({ code: process.exitCode ?? 0, stdout: result.stdout(), stderr: result.stderr() })
  process.exitCode = undefined
})
process.send('loaded')`

// A copy of the program that has the sources is run from them: its bundle may be older.
const sources = resolve(bin, '../../src/cli/main.ts')
const main = pathToFileURL(existsSync(sources) ? sources : resolve(bin, '../../dist/main.js')).href

const Result = Type.Object({ code: Type.Integer(), stdout: Type.String(), stderr: Type.String() })

/** Processes of this worker that run no command. */
const idle: ChildProcess[] = []

/** The next message of a process; rejects if it ends. */
async function nextMessage(child: ChildProcess): Promise<unknown> {
  const ended = new AbortController()
  const exited = once(child, 'exit', { signal: ended.signal }).then(([code, signal]) => {
    throw new Error(`the process of commands ended with ${code ?? signal}`)
  })
  try {
    return (await Promise.race([once(child, 'message', { signal: ended.signal }), exited]))[0]
  } finally {
    ended.abort()
    exited.catch(() => {})
  }
}

async function startProcess(): Promise<ChildProcess> {
  const child = spawn(process.execPath, ['--input-type=module', '-e', program, main, bin], {
    env: { ...basics, UV_THREADPOOL_SIZE: '16' },
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  })
  atWorkerEnd(() => child.kill('SIGKILL'))
  await nextMessage(child)
  return child
}

/**
 * Runs a command in a process that earlier commands of this worker used, if one is idle: what ends with its process, such as signals, locks
 * of killed commands and terminals, needs a process of its own.
 */
export async function runWarm(
  args: readonly string[],
  settings: Readonly<Record<string, string>>,
): Promise<CommandResult> {
  const child = idle.pop() ?? (await startProcess())
  // An idle process does not keep this one from its end.
  child.ref()
  child.channel?.ref()
  const received = nextMessage(child)
  child.send({ args, env: { ...basics, ...settings } })
  const result = Value.Parse(Result, await received)
  child.unref()
  child.channel?.unref()
  idle.push(child)
  return result
}
