import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { atMost, type Bar, barTable } from './bars.ts'
import { writePackage } from './mediabucket.ts'
import { median, startSubject } from './subject.ts'

/** How often, and how long the idle service is observed. The short form proves that the bench runs, and measures nothing. */
export interface StartExtent {
  readonly rounds: number
  /** Before the observation, and of it. */
  readonly seconds: number
}

export interface StartResults {
  /** Seconds of CPU from the start of the process until it prints that it is ready. */
  readonly first: number
  readonly later: number
  /** Resident bytes after `seconds` without requests, threads, and the share of a core from then on. */
  readonly rss: number
  readonly threads: number
  readonly share: number
  /** How often its threads woke in a second. */
  readonly wakes: number
}

/** Measures starts of the package as npm installs it, on both cores, and the idle service. */
export async function benchStart(
  { rounds, seconds }: StartExtent,
  report: (text: string) => void,
): Promise<StartResults> {
  const scratch = mkdtempSync(join(tmpdir(), 'mediabucket-bench-'))
  try {
    const program = await writePackage(scratch)
    const start = (home: string) => {
      mkdirSync(home, { recursive: true })
      const settings = { HOME: home, MEDIABUCKET_DATA: join(home, 'data'), MEDIABUCKET_PORT: '0' }
      const command = ['node', program, 'serve']
      return startSubject('mediabucket', command, settings, isReady, 'together')
    }
    const firsts: number[] = []
    const laters: number[] = []
    for (let round = 0; round < rounds; round += 1) {
      const home = join(scratch, `home-${round}`)
      for (const taken of [firsts, laters]) {
        await using service = await disposable(start(home))
        taken.push(service.cpu())
        report(`round ${round}: ${service.cpu().toFixed(2)} s of CPU`)
        // Until the compiled modules are written.
        await setTimeout(1_000)
      }
    }
    report('idle')
    await using idle = await disposable(start(join(scratch, 'home-0')))
    await setTimeout(seconds * 1_000)
    const [cpu, woken] = [exactCpu(idle.pid), wakesOf(idle.pid)]
    await setTimeout(seconds * 1_000)
    return {
      first: median(firsts),
      later: median(laters),
      rss: idle.rss(),
      threads: ofThreads(idle.pid, 'comm').length,
      share: (exactCpu(idle.pid) - cpu) / seconds,
      wakes: (wakesOf(idle.pid) - woken) / seconds,
    }
  } finally {
    rmSync(scratch, { recursive: true, force: true })
  }
}

const isReady = (printed: string): string | null => /ready at (\S+)/.exec(printed)?.[1] ?? null

async function disposable<S extends { stop(): Promise<void> }>(
  starting: Promise<S>,
): Promise<S & AsyncDisposable> {
  const subject = await starting
  return { ...subject, [Symbol.asyncDispose]: subject.stop }
}

/** The lines of a file about each thread of a process. */
const ofThreads = (pid: number, file: string): string[] =>
  readdirSync(`/proc/${pid}/task`).map((thread) =>
    readFileSync(`/proc/${pid}/task/${thread}/${file}`, 'utf8'),
  )

const sum = (numbers: readonly number[]): number => numbers.reduce((total, one) => total + one, 0)

/** Seconds of CPU of all threads, from a count of nanoseconds: an idle service uses less than a hundredth of a second in many seconds. */
const exactCpu = (pid: number): number =>
  sum(ofThreads(pid, 'schedstat').map((text) => Number(text.split(' ')[0]))) / 1e9

/** How often the threads of a process gave up their core by themselves: each time they had waited for something. */
const wakesOf = (pid: number): number =>
  sum(ofThreads(pid, 'status').map((text) => Number(/^voluntary_ctxt_switches:\s+(\d+)/m.exec(text)?.[1])))

/** The figures and their required values, as Markdown. */
export function reportStart({ first, later, rss, threads, share, wakes }: StartResults): string {
  const bars: Bar[] = [
    atMost('start with compiled modules, CPU', later, 0.4, 's', '0.3 s'),
    atMost('idle service, resident memory', rss / 2 ** 20, 100, 'MiB', ''),
    {
      name: 'idle service, threads',
      must: '≤ 13',
      aim: '',
      found: String(threads),
      met: threads <= 13,
    },
    atMost('idle service, share of a core', share * 100, 0.1, '%', ''),
  ]
  return [
    ...barTable(bars),
    '',
    `The first start takes ${first.toFixed(2)} s of CPU. The threads of the idle service wake ${wakes.toFixed(1)} times a second.`,
  ].join('\n')
}
