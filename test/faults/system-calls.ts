import { execFile, spawn } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { temporaryDirectory } from '../harness/directory.ts'
import type { TestServer } from '../harness/server.ts'
import { needTools } from '../harness/tools.ts'
import { until } from '../harness/until.ts'

/** A system call of any thread. */
export interface SystemCall {
  readonly name: string
  /** As strace prints them, with the path of each descriptor and the first written bytes (a page of the catalog). */
  readonly args: string
  readonly result: number
  /** The positions in the trace of its start and end; calls of several threads overlap. */
  readonly begin: number
  readonly end: number
}

const traced = [
  'write,writev,pwrite64,pwritev,sendto,sendmsg',
  'fsync,fdatasync',
  'open,openat,rename,renameat,renameat2,mkdir,mkdirat,unlink,unlinkat',
].join(',')

/** Slightly more than a page of the catalog. */
const shownBytes = 9_000

interface Trace extends AsyncDisposable {
  /** Ends the trace and returns its calls. */
  calls(): Promise<SystemCall[]>
}

/**
 * Attaches strace to a server. `inject` makes calls fail (strace(1)): `fdatasync:error=EIO:when=1`. `path` restricts
 * the trace to calls on that path.
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
  needTools('strace')
  const strace = spawn('strace', [...args, '-p', `${server.process.pid}`], {
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  let messages = ''
  strace.stderr.on('data', (chunk) => {
    messages += chunk
  })
  const ended = new Promise<void>((resolve) => strace.once('exit', () => resolve()))
  // It attaches to one thread after another.
  await until('strace is attached to every thread', () => {
    if (strace.exitCode !== null) throw new Error(messages)
    return isTraced(server.process.pid)
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

/** Whether each thread of a process is traced. */
function isTraced(pid: number | undefined): boolean {
  const tasks = `/proc/${pid}/task`
  try {
    return readdirSync(tasks).every((task) =>
      /^TracerPid:\s*[1-9]/m.test(readFileSync(join(tasks, task, 'status'), 'utf8')),
    )
  } catch {
    // A thread ended in the meantime.
    return false
  }
}

/** Parses the output of `strace -f`: a line for each call, or two if another thread's call comes between. */
function parseTrace(text: string): SystemCall[] {
  const calls: SystemCall[] = []
  const open = new Map<string, { name: string; args: string; begin: number }>()
  for (const [at, line] of text.split('\n').entries()) {
    const [, thread = '', rest = ''] = /^(\d+)\s+(.*)$/.exec(line) ?? []
    const resumed = /^<\.\.\. (\w+) resumed>(.*)$/.exec(rest)
    const unfinished = /^(\w+)\((.*) <unfinished \.\.\.>$/.exec(rest)
    const whole = /^(\w+)\((.*)$/.exec(rest)
    if (unfinished) {
      open.set(thread, { name: unfinished[1] ?? '', args: unfinished[2] ?? '', begin: at })
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

/** Whether this process may trace another, as far as it is known without strace. */
export const canTrace = (): Promise<boolean> =>
  new Promise((resolve) =>
    execFile('strace', ['-o', '/dev/null', 'true'], (error) =>
      resolve(error === null || error.code === 'ENOENT'),
    ),
  )
