import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'

/** The core of the measured process; the load runs on the other one. */
const subjectCore = '0'
export const loadCore = '1'
/** Linux counts CPU time in hundredths of a second. */
const tick = 0.01

/** A server under measurement, pinned to one core. */
export interface Subject {
  readonly name: string
  readonly url: string
  readonly pid: number
  /** User and system seconds of its processes so far, also of those that have ended. */
  readonly cpu: () => number
  /** Resident bytes of its processes. */
  readonly rss: () => number
  /** The peak of the resident bytes of its first process since `resetPeak`. */
  readonly peakRss: () => number
  readonly resetPeak: () => void
  readonly stop: () => Promise<void>
  /** The cores of its load. */
  readonly loadCores: string
}

/** Where a subject and its load run: on one core each, or both on both cores. */
export type Place = 'apart' | 'together'
const bothCores = '0,1'

/** Starts a program on the subject's core and resolves when `ready` returns true for its output. */
export async function startSubject(
  name: string,
  command: readonly string[],
  env: Readonly<Record<string, string>>,
  ready: (printed: string) => string | null,
  place: Place = 'apart',
): Promise<Subject> {
  const child = spawn('taskset', ['-c', place === 'apart' ? subjectCore : bothCores, ...command], {
    env: { PATH: process.env['PATH'], ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let printed = ''
  const url = await new Promise<string>((resolve, reject) => {
    let isReady = false
    // After the server is ready its output is discarded, because searching it cost the server a sixth of its rate.
    const readOutput = (chunk: Buffer) => {
      if (isReady) return
      printed += chunk
      const found = ready(printed)
      if (found === null) return
      isReady = true
      resolve(found)
    }
    child.stdout.on('data', readOutput)
    child.stderr.on('data', readOutput)
    child.once('exit', (code) => reject(new Error(`${name} exited with ${code}: ${printed}`)))
  })
  const pid = child.pid ?? 0
  return {
    name,
    url,
    pid,
    ...processFigures(pid),
    stop: () => stop(child),
    loadCores: place === 'apart' ? loadCore : bothCores,
  }
}

/** What /proc shows of a process and its children. */
export const processFigures = (pid: number): Pick<Subject, 'cpu' | 'rss' | 'peakRss' | 'resetPeak'> => ({
  // Own times, and those of children that have ended: the processes of pictures end when they are idle.
  cpu: () => sumOver(pid, (stat) => stat.slice(13, 17).reduce((sum, ticks) => sum + Number(ticks), 0) * tick),
  rss: () => sumOver(pid, (stat) => Number(stat[23]) * 4096),
  peakRss: () => {
    const status = readFileSync(`/proc/${pid}/status`, 'utf8')
    return Number(/^VmHWM:\s+(\d+) kB/m.exec(status)?.[1]) * 1024
  },
  // proc(5): 5 resets the peak to the current resident size.
  resetPeak: () => writeFileSync(`/proc/${pid}/clear_refs`, '5'),
})

/** Runs a program on the core of the subject or of the load, and returns its output. */
export async function runPinned(
  side: 'subject' | 'load',
  command: readonly string[],
  env: Readonly<Record<string, string>> = {},
  cores = loadCore,
): Promise<string> {
  const core = side === 'subject' ? subjectCore : cores
  const child = spawn('taskset', ['-c', core, ...command], {
    env: { PATH: process.env['PATH'], ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let printed = ''
  child.stdout.on('data', (chunk) => {
    printed += chunk
  })
  const [code] = await once(child, 'close')
  // `timeout` reports with 124 that it has interrupted the program.
  if (code !== 0 && !(code === 124 && command[0] === 'timeout'))
    throw new Error(`${command.join(' ')} exited with ${code}: ${printed}`)
  return printed
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  child.kill('SIGTERM')
  await once(child, 'exit')
}

/** Sums a figure of /proc/PID/stat over a process and its children; processes that have ended are ignored. */
function sumOver(pid: number, figure: (stat: readonly string[]) => number): number {
  const stats = readdirSync('/proc')
    .filter((entry) => /^\d+$/.test(entry))
    .flatMap((entry) => {
      try {
        const text = readFileSync(`/proc/${entry}/stat`, 'utf8')
        // The second field is a name in parentheses that may contain spaces.
        const [head = '', tail = ''] = [
          text.slice(0, text.indexOf(' ')),
          text.slice(text.lastIndexOf(')') + 2),
        ]
        return [[head, '', ...tail.split(' ')]]
      } catch {
        return []
      }
    })
  const ours = new Set([String(pid)])
  for (let grown = 0; grown !== ours.size; ) {
    grown = ours.size
    for (const stat of stats) if (ours.has(stat[3] ?? '')) ours.add(stat[0] ?? '')
  }
  return stats.filter((stat) => ours.has(stat[0] ?? '')).reduce((sum, stat) => sum + figure(stat), 0)
}

export interface Load {
  readonly connections: number
  readonly seconds: number
  readonly headers?: readonly string[]
  /** A Lua script for wrk, and its arguments. */
  readonly script?: readonly string[]
}

export interface Measure {
  readonly perSecond: number
  readonly bytesPerSecond: number
  /** Seconds of the subject's CPU for one request. */
  readonly cpuPerRequest: number
  /** Milliseconds. */
  readonly p50: number
  readonly p99: number
}

/** What wrk has measured. */
interface LoadMeasure extends Measure {
  /** Milliseconds. Not a number unless the script prints it. */
  readonly p95: number
}

/** Runs wrk against a subject on the other core. Rejects on a response other than 2xx and 3xx, unless `refusals`. */
export async function measure(
  subject: Subject,
  path: string,
  load: Load,
  refusals = false,
): Promise<LoadMeasure> {
  const { connections, seconds, headers = [], script } = load
  const run = (duration: number): Promise<string> =>
    runPinned(
      'load',
      [
        // wrk accepts only whole seconds; an interrupt ends it earlier, with its figures.
        ...(duration < 1 ? ['timeout', '-s', 'INT', `${duration}`] : []),
        ...['wrk', '-t1', `-c${connections}`, `-d${Math.ceil(duration)}s`, '--timeout', '30s', '--latency'],
        ...headers.flatMap((header) => ['-H', header]),
        ...(script ? ['-s', script[0] ?? ''] : []),
        subject.url + path,
        ...(script && script.length > 1 ? ['--', ...script.slice(1)] : []),
      ],
      {},
      subject.loadCores,
    )
  let text = ''
  const figure = (pattern: RegExp) => pattern.exec(text)?.[1] ?? ''
  let [requests, spent] = [0, 0]
  // On a busy machine a short run may end before the first response, or before the subject has used a tick of CPU.
  const longest = seconds < 1 ? 16 : seconds
  for (let duration = seconds; duration <= longest && (requests === 0 || spent === 0); duration *= 2) {
    const before = subject.cpu()
    text = await run(duration)
    spent = subject.cpu() - before
    requests = Number(figure(/(\d+) requests in/))
  }
  const wrong = figure(/Non-2xx or 3xx responses: (\d+)/) || figure(/Socket errors: (.*)/)
  if (requests === 0 || (wrong && !refusals)) throw new Error(`${subject.name} ${path}: ${text}`)
  return {
    perSecond: Number(figure(/Requests\/sec:\s+([\d.]+)/)),
    bytesPerSecond: bytes(figure(/Transfer\/sec:\s+(\S+)/)),
    cpuPerRequest: spent / requests,
    p50: milliseconds(figure(/^ +50%\s+(\S+)/m)),
    p95: milliseconds(figure(/^ +95%\s+(\S+)/m)),
    p99: milliseconds(figure(/^ +99%\s+(\S+)/m)),
  }
}

const units: Readonly<Record<string, number>> = { B: 1, KB: 2 ** 10, MB: 2 ** 20, GB: 2 ** 30 }
const bytes = (text: string) => Number.parseFloat(text) * (units[text.replace(/[\d.]/g, '')] ?? Number.NaN)
const times: Readonly<Record<string, number>> = { us: 0.001, ms: 1, s: 1000, m: 60_000 }
const milliseconds = (text: string) =>
  Number.parseFloat(text) * (times[text.replace(/[\d.]/g, '')] ?? Number.NaN)

export function median(numbers: readonly number[]): number {
  const sorted = numbers.toSorted((a, b) => a - b)
  const middle = sorted.length / 2
  return sorted.length % 2
    ? (sorted[Math.floor(middle)] ?? 0)
    : ((sorted[middle - 1] ?? 0) + (sorted[middle] ?? 0)) / 2
}
