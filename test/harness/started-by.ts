import { type ChildProcess, spawn } from 'node:child_process'
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { read } from '../architecture/sources.ts'
import { basics, bin } from './server.ts'
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

/** A project with the script that starts the service here. Its `mediabucket` is the bundle, which starts in a third of the time. */
async function createProject(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'mediabucket-project-'))
  const { start } = JSON.parse(read('package.json')).scripts
  await writeFile(join(directory, 'package.json'), JSON.stringify({ private: true, scripts: { start } }))
  const programs = join(directory, 'node_modules/.bin')
  await mkdir(programs, { recursive: true })
  await symlink(bin, join(programs, 'mediabucket'))
  return directory
}

/** Runs `command` in a project with this Node.js, and resolves when its service listens. */
export async function startBy(
  command: readonly [string, ...string[]],
  settings: Readonly<Record<string, string>> = {},
  /** The log line of a listening service. */
  listening = /"msg":"listening"/,
): Promise<Started> {
  const [data, project] = [await mkdtemp(join(tmpdir(), 'mediabucket-')), await createProject()]
  const env = {
    ...basics,
    PATH: [dirname(process.execPath), basics.PATH].join(':'),
    HOME: process.env['HOME'],
    npm_config_update_notifier: 'false',
    MEDIABUCKET_PORT: '0',
    MEDIABUCKET_DATA: data,
    ...settings,
  }
  const [program, ...args] = command
  // Its own process group, so that all its processes can be ended.
  const child = spawn(program, args, { cwd: project, env, detached: true, stdio: ['pipe', 'pipe', 'pipe'] })
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
      for (const path of [data, project]) await rm(path, { recursive: true, force: true, maxRetries: 5 })
    },
  }
}
