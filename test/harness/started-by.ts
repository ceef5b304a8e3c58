import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { root } from '../architecture/sources.ts'
import { basics } from './server.ts'
import { until } from './until.ts'

/** A service that another program runs, such as npm. */
export interface Started extends AsyncDisposable {
  /** The other program. */
  readonly process: ChildProcess
  readonly url: string
  readonly token: string
  readonly data: string
  /** Everything that the program and the service have written to stdout and stderr. */
  readonly output: () => string
  /** The process id of the service. */
  readonly pid: () => number
  readonly isRunning: () => boolean
  /** Resolves with the exit code and the signal of the program. */
  readonly exited: Promise<readonly [number | null, NodeJS.Signals | null]>
}

/** Runs `command` in the repository with the project's Node.js, and resolves when its service listens. */
export async function startBy(
  command: readonly [string, ...string[]],
  settings: Readonly<Record<string, string>> = {},
  /** The log line of a listening service. */
  listening = /"msg":"listening"/,
): Promise<Started> {
  const data = await mkdtemp(join(tmpdir(), 'mediabucket-'))
  const env = {
    ...basics,
    PATH: [dirname(process.execPath), join(root, 'node_modules/.bin'), basics.PATH].join(':'),
    HOME: process.env['HOME'],
    npm_config_update_notifier: 'false',
    MEDIABUCKET_PORT: '0',
    MEDIABUCKET_DATA: data,
    ...settings,
  }
  const [program, ...args] = command
  // Its own process group, so that all its processes can be ended.
  const child = spawn(program, args, { cwd: root, env, detached: true, stdio: ['pipe', 'pipe', 'pipe'] })
  const exited = new Promise<readonly [number | null, NodeJS.Signals | null]>((resolve) =>
    child.once('exit', (code, signal) => resolve([code, signal])),
  )
  let output = ''
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk) => {
      output += chunk
    })
  const endAll = () => {
    try {
      process.kill(-(child.pid ?? 0), 'SIGKILL')
    } catch {
      // All processes have ended.
    }
  }
  try {
    const isListening = () => {
      if (child.exitCode !== null) throw new Error(`it ended: ${output}`)
      return listening.test(output) && /ready at/.test(output) && /mbkt_\w+/.test(output)
    }
    // Below the limit of a test, so that a failure shows the output.
    await until('the service listens', isListening, 150_000)
  } catch (error) {
    endAll()
    throw new Error(`no service: ${output}`, { cause: error })
  }
  const pid = () => Number(/"pid":(\d+)/.exec(output)?.[1])
  return {
    process: child,
    url: /http:\/\/127[\d.:]+/.exec(output)?.[0] ?? '',
    token: /mbkt_\w+/.exec(output)?.[0] ?? '',
    data,
    output: () => output,
    pid,
    isRunning() {
      try {
        return process.kill(pid(), 0)
      } catch {
        return false
      }
    },
    exited,
    async [Symbol.asyncDispose]() {
      endAll()
      await exited
      await rm(data, { recursive: true, force: true, maxRetries: 5 })
    },
  }
}
