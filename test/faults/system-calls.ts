import { execFile, spawn } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { temporaryDirectory } from '../harness/directory.ts'
import type { TestServer } from '../harness/server.ts'
import { until } from '../harness/until.ts'

/** One call of the system, of whichever thread. */
export interface SystemCall {
  readonly name: string
  /** As strace shows them, with the path of each descriptor; of written bytes no more than a page of the catalog. */
  readonly args: string
  readonly result: number
  /** Where in the trace it began and ended; calls of several threads overlap. */
  readonly begin: number
  readonly end: number
}

const traced = [
  'write,writev,pwrite64,pwritev,sendto,sendmsg',
  'fsync,fdatasync',
  'rename,renameat,renameat2,mkdir,mkdirat,unlink,unlinkat',
].join(',')

/** A page of the catalog and some more. */
const shownBytes = 5_000

interface Trace extends AsyncDisposable {
  /** Ends it, and gives back what was called. */
  calls(): Promise<SystemCall[]>
}

/**
 * Attaches strace to a server. `inject` makes calls fail, as its manual says: `fdatasync:error=EIO:when=1`; with
 * `path` it sees the calls on that path alone.
 */
export async function traceServer(
  server: TestServer,
  injection?: { readonly inject: string; readonly path?: string },
): Promise<Trace> {
  const directory = await temporaryDirectory()
  const output = join(directory.path, 'trace')
  const injecting = injection ? ['-e', `inject=${injection.inject}`] : []
  if (injection?.path !== undefined) injecting.push('-P', injection.path)
  const args = ['-f', '-y', '-s', `${shownBytes}`, '-e', `trace=${traced}`, ...injecting, '-o', output]
  const strace = spawn('strace', [...args, '-p', `${server.process.pid}`], {
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  let told = ''
  strace.stderr.on('data', (chunk) => {
    told += chunk
  })
  const ended = new Promise<void>((resolve) => strace.once('exit', () => resolve()))
  await until('strace is attached', () => {
    if (strace.exitCode !== null) throw new Error(told)
    return told.includes('attached')
  })
  async function end(): Promise<void> {
    strace.kill('SIGINT')
    await ended
  }
  return {
    async calls() {
      await end()
      return parseTrace(await readFile(output, 'latin1'))
    },
    async [Symbol.asyncDispose]() {
      await end()
      await directory[Symbol.asyncDispose]()
    },
  }
}

/** What `strace -f` writes: a line for each call, or two where another thread's call came between. */
function parseTrace(text: string): SystemCall[] {
  const calls: SystemCall[] = []
  const open = new Map<string, { name: string; args: string; begin: number }>()
  for (const [at, line] of text.split('\n').entries()) {
    const [, thread = '', rest = ''] = /^(\d+)\s+(.*)$/.exec(line) ?? []
    const resumed = /^<\.\.\. (\w+) resumed>(.*)$/.exec(rest)
    const begun = /^(\w+)\((.*) <unfinished \.\.\.>$/.exec(rest)
    const whole = /^(\w+)\((.*)$/.exec(rest)
    if (begun) {
      open.set(thread, { name: begun[1] ?? '', args: begun[2] ?? '', begin: at })
      continue
    }
    const first = resumed ? open.get(thread) : null
    const name = first?.name ?? whole?.[1]
    const [, args, result] = /^(.*)\)\s+= (-?\d+)/.exec(resumed?.[2] ?? whole?.[2] ?? '') ?? []
    open.delete(thread)
    if (name === undefined || args === undefined) continue
    calls.push({
      name,
      args: `${first?.args ?? ''}${args}`,
      result: Number(result),
      begin: first?.begin ?? at,
      end: at,
    })
  }
  return calls
}

/** Whether this process may trace another. */
export const canTrace = (): Promise<boolean> =>
  new Promise((resolve) =>
    execFile('strace', ['-o', '/dev/null', 'true'], (error) => resolve(error === null)),
  )
