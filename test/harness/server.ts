import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join, resolve } from 'node:path'
import { createInterface } from 'node:readline'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { databaseSettings, prepareDatabase } from './database.ts'
import { until } from './until.ts'

const sources = resolve(import.meta.dirname, '../../packages/server/bin/mediabucket.js')

const bundle = process.env['MEDIABUCKET_BUNDLE']

/** The program: the bundle of bundle.ts, or else the sources. */
export const bin = bundle ?? sources

/** The Node option that loads a module of test/faults before the program, from the program's bundle if there is one. */
export const importOption = (module: URL): string =>
  `--import ${bundle === undefined ? module : pathToFileURL(join(bundle, '../../dist', `${basename(module.pathname, '.ts')}.js`))}`

/** `MEDIABUCKET_WORKERS=2 npx vitest run test/http` runs these tests on several workers. */
const workers = process.env['MEDIABUCKET_WORKERS']

/**
 * The environment of every process: the path, and Node's compile cache, which halves the time to start. Nothing is rendered ahead, because
 * that needs more CPU time than most tests.
 */
export const basics = {
  MEDIABUCKET_RENDER_AHEAD: 'off',
  // Renders have a low priority: beside other tests they can take far longer than by themselves.
  MEDIABUCKET_VARIANT_TIMEOUT: '120s',
  ...(workers === undefined ? {} : { MEDIABUCKET_WORKERS: workers }),
  PATH: process.env['PATH'],
  NODE_COMPILE_CACHE: join(tmpdir(), 'mediabucket-compile-cache'),
}

/** The flags with which the program would restart itself at once (bin/mediabucket.js). */
const serviceFlags = ['--disable-sigusr1', '--max-semi-space-size=16']

type Settings = Readonly<Record<string, string>>

/** A line of the server's log. */
export interface LogLine {
  readonly msg: string
  readonly [member: string]: unknown
}

/** A real server that other tests use at the same time. */
export interface SharedServer {
  readonly url: string
  readonly data: string
  /** A bucket that no other test uses, and a token for it. */
  readonly bucket: string
  readonly token: string
  /** Everything the server logged so far. */
  readonly stderr: () => string
  /** A request with the token; pass `authorization` to send another one. */
  readonly request: (path: string, init?: RequestInit) => Promise<Response>
  /** Runs a command on the same data, such as `command('token', 'list')`. */
  readonly command: (...args: string[]) => Promise<{ stdout: string; stderr: string }>
}

/** A real server in its own process, on a free port. Its token is empty unless this is the first start. */
export interface TestServer extends SharedServer, AsyncDisposable {
  readonly process: ChildProcess
  /** Everything the server printed so far. */
  readonly stdout: () => string
  readonly log: () => LogLine[]
  /** Sends SIGTERM and resolves with the exit code. */
  readonly stop: () => Promise<number | null>
  /** Sends SIGKILL and resolves when the process has ended. */
  readonly kill: () => Promise<void>
}

/**
 * Starts a server and resolves when it listens. Without `data` it uses a new directory, removed on disposal;
 * `program` is another copy of the bin. With `flags: []` the program restarts itself with its own flags, as it does for users.
 */
export async function startServer(
  settings: Settings = {},
  data?: string,
  program: string = bin,
  flags: readonly string[] = serviceFlags,
): Promise<TestServer> {
  const directory = data ?? (await mkdtemp(join(tmpdir(), 'mediabucket-')))
  prepareDatabase(directory)
  const env = {
    ...basics,
    MEDIABUCKET_PORT: '0',
    ...(await databaseSettings(directory)),
    ...settings,
    MEDIABUCKET_DATA: directory,
  }
  const child = spawn(process.execPath, [...flags, program, 'serve'], {
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const exited = new Promise<number | null>((done) => child.once('exit', (code) => done(code)))
  let stdout = ''
  let stderr = ''
  child.stdout.on('data', (chunk) => {
    stdout += chunk
  })
  child.stderr.on('data', (chunk) => {
    stderr += chunk
  })
  const lines: LogLine[] = []
  /** The characters of stderr that `lines` has. */
  let read = 0
  // Tests call it again and again to wait for a line.
  const log = (): LogLine[] => {
    const end = stderr.lastIndexOf('\n') + 1
    if (end > read) for (const line of stderr.slice(read, end - 1).split('\n')) lines.push(JSON.parse(line))
    read = Math.max(read, end)
    return [...lines]
  }

  // Its last output is the hint how to continue, after the token.
  await new Promise<void>((done, fail) => {
    createInterface({ input: child.stdout }).on('line', (line) => {
      // A line of JSON, or the last line of a text.
      if (/token create|curl .*\/api\/media$/.test(line)) done()
    })
    void exited.then((code) => fail(new Error(`the server exited with ${code}: ${stderr}`)))
  })
  const origin = /ready at (\S+)/.exec(stdout)?.[1] ?? ''
  // The log comes through another pipe. With a base URL only the log shows the port.
  const isSilent =
    settings['MEDIABUCKET_LOG_LEVEL'] !== undefined || settings['MEDIABUCKET_LOG_FORMAT'] === 'text'
  const listening = isSilent
    ? null
    : await until('the log of the start', () => log().find(({ msg }) => msg === 'listening'))
  const port = listening?.['port'] ?? new URL(origin).port
  const url = `http://127.0.0.1:${port}`
  const token = /mbkt_\w+/.exec(stdout)?.[0] ?? ''

  async function stop() {
    child.kill('SIGTERM')
    return await exited
  }
  async function kill() {
    child.kill('SIGKILL')
    await exited
  }
  return {
    url,
    data: directory,
    bucket: 'default',
    token,
    process: child,
    stdout: () => stdout,
    stderr: () => stderr,
    log,
    request(path, init = {}) {
      const headers = new Headers(init.headers)
      if (!headers.has('authorization')) headers.set('authorization', `Bearer ${token}`)
      return fetch(new URL(path, url), { ...init, headers })
    },
    command: (...args) => promisify(execFile)(process.execPath, [program, ...args], { env }),
    stop,
    kill,
    async [Symbol.asyncDispose]() {
      await kill()
      if (data === undefined) await rm(directory, { recursive: true, force: true })
    },
  }
}

/** Runs a command on a new or given directory; rejects as execFile does when it fails. */
export const runCommand = (args: readonly string[], settings: Settings) =>
  promisify(execFile)(process.execPath, [bin, ...args], { env: { ...basics, ...settings } })
