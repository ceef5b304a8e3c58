import { type ChildProcess, fork, spawnSync } from 'node:child_process'
import { existsSync, writeFileSync } from 'node:fs'
import { extname } from 'node:path'
import { errorCode } from '../core/faults.ts'
import { PictureOverLimits, PictureQueue, PictureTaskPreempted, PictureWorkersBusy } from './picture-queue.ts'
import {
  maxRead,
  type PictureResult,
  type PictureTask,
  type ReadReply,
  type ReadRequest,
  type Ready,
} from './picture-task.ts'

/** Reads bytes that are in the file. */
export type ReadBytes = (position: number, length: number) => Promise<Uint8Array>

interface Job {
  readonly bucket: string
  readonly task: PictureTask
  readonly read: ReadBytes
  readonly isAhead: boolean
  /** How often it was preempted. */
  preemptions: number
  /** When its process began to work on it (`performance.now`); null before. */
  startedAt: number | null
  /** Ends its wait in the queue. */
  waiting: NodeJS.Timeout | undefined
  readonly resolve: (result: PictureResult) => void
  readonly reject: (error: Error) => void
}

interface Worker {
  readonly process: ChildProcess
  job: Job | null
  /** Its task was preempted, for another bucket or because it runs ahead. */
  preempted: boolean
  /** Its task exceeded the time limit. */
  timedOut: boolean
  /** Ends the process after the task timeout or the idle time. */
  timer: NodeJS.Timeout
}

/** Milliseconds until an idle worker ends. Starting one takes longer than most tasks. */
const idleTime = 15_000

/** The maximum milliseconds from the start of a process until it is ready. */
const startTime = 8_000

/** Milliseconds that a bucket without a running task waits before it preempts a bucket with more than its share, or a task that runs ahead. */
const preemptionDelay = 1_000

interface ProcessLimits {
  /** Bytes for one process. */
  readonly memory: number
  /** 0 to 19. */
  readonly niceness: number
  /** Whether the processes may start programs, which inherit their restrictions. */
  readonly startPrograms?: boolean
}

interface PoolLimits extends ProcessLimits {
  /** Processes in parallel. */
  readonly workers: number
  /** Tasks that may wait; more are rejected. */
  readonly queue: number
  /** Milliseconds that a task may wait. */
  readonly queueTimeout: number
  /** Milliseconds for one task, without the start of its process. */
  readonly timeout: number
}

/**
 * A pool of processes that run one task each, started on demand and ended when idle. A bucket may use all workers while no
 * other bucket waits; otherwise at most half of them.
 */
export class PictureWorkers {
  readonly #limits: PoolLimits
  readonly #waiting: PictureQueue<Job>
  /** The workers that a bucket may use while others wait. */
  readonly #share: number
  readonly #workers = new Set<Worker>()
  readonly #startProcess: () => ChildProcess | null
  #closed = false
  #preemptingAgain: NodeJS.Timeout | null = null
  readonly #idleListeners: (() => void)[] = []

  constructor(limits: PoolLimits) {
    this.#limits = limits
    this.#waiting = new PictureQueue(limits.queue)
    this.#share = Math.max(1, Math.floor(limits.workers / 2))
    this.#startProcess = createPictureProcesses(limits)
  }

  /**
   * Runs a task for a bucket; buckets take turns. `read` reads bytes of the file if the task does not have them. Throws PictureOverLimits,
   * PictureWorkersBusy and the errors of `read`.
   */
  async run(task: PictureTask, bucket = '', read: ReadBytes = noBytes): Promise<PictureResult> {
    if (this.#closed) throw stopping()
    const { job, result } = newJob({ task, bucket, read, isAhead: false })
    this.#enqueue(job)
    this.#next()
    // A task that runs ahead gives way, so no request is refused because of it.
    const excess = this.#findAhead() === undefined ? 0 : 1
    this.#waiting.overflow(job, excess)?.reject(new PictureWorkersBusy('the queue is full'))
    if (this.#waiting.length > 0) setTimeout(() => this.#preempt(), preemptionDelay).unref()
    return result
  }

  /**
   * Runs a task that no request needs yet. It never waits for a process. Throws PictureTaskPreempted if a task of `run` waits or runs, if no
   * process is free, or if a later task of `run` has waited for the preemption delay; and as `run`.
   */
  async runAhead(task: PictureTask): Promise<PictureResult> {
    if (this.#closed) throw stopping()
    const free = this.#findFree()
    if (!this.#isIdle() || (free === undefined && this.#workers.size >= this.#limits.workers))
      throw givenWay()
    const { job, result } = newJob({ task, bucket: '', read: noBytes, isAhead: true })
    this.#begin(job, free)
    return result
  }

  /** Resolves when no task of `run` waits or runs and no process is being ended, or when the workers are closed. */
  async whenIdle(): Promise<void> {
    if (this.#closed || this.#isIdle()) return
    await new Promise<void>((resolve) => this.#idleListeners.push(resolve))
  }

  /** Ends all workers, also busy ones. */
  close(): void {
    this.#closed = true
    this.#reportIdle()
    for (const job of this.#waiting.clear()) job.reject(stopping())
    for (const { process } of this.#workers) process.kill('SIGKILL')
  }

  #enqueue(job: Job, first = false): void {
    this.#waiting.add(job, first)
    job.waiting = setTimeout(() => {
      if (this.#waiting.remove(job)) job.reject(new PictureWorkersBusy('the queue timeout expired'))
    }, this.#limits.queueTimeout).unref()
  }

  /** Begins the tasks for which there are processes. */
  #next(): void {
    if (this.#closed) return
    if (this.#idleListeners.length > 0 && this.#isIdle()) this.#reportIdle()
    if (this.#waiting.length === 0) return
    const free = this.#findFree()
    if (free === undefined && this.#workers.size >= this.#limits.workers) return
    const job = this.#waiting.take((bucket) => this.#running(bucket), this.#share)
    if (job === null) return
    this.#begin(job, free)
    this.#next()
  }

  /** Gives the task to this process, or to a new one. */
  #begin(job: Job, free: Worker | undefined): void {
    const worker = free ?? this.#start()
    if (worker === null) {
      job.reject(new PictureWorkersBusy('no process can be started'))
      return
    }
    clearTimeout(job.waiting)
    worker.job = job
    // The time of the task begins when the process is ready (`#receive`).
    job.startedAt = free ? performance.now() : null
    endAfter(worker, free ? this.#limits.timeout : this.#limits.timeout + startTime)
    // If sending fails, the process ends, and `#end` reports it.
    if (worker.process.connected) worker.process.send(job.task, () => undefined)
  }

  /** Null if no process can be started. */
  #start(): Worker | null {
    const child = this.#startProcess()
    if (child === null) return null
    const timer = setTimeout(() => undefined)
    const worker: Worker = { process: child, job: null, preempted: false, timedOut: false, timer }
    this.#workers.add(worker)
    child.on('message', (message: PictureResult | ReadRequest | Ready) => this.#receive(worker, message))
    child.once('error', ({ message }) => this.#end(worker, message))
    child.once('exit', (code, signal) => this.#end(worker, signal ?? code))
    return worker
  }

  #receive(worker: Worker, message: PictureResult | ReadRequest | Ready): void {
    if (message.outcome === 'ready') {
      if (worker.job === null) return
      worker.job.startedAt = performance.now()
      endAfter(worker, this.#limits.timeout)
    } else if (message.outcome === 'read') void sendBytes(worker, message)
    else {
      worker.job?.resolve(message)
      worker.job = null
      endAfter(worker, idleTime)
      this.#next()
    }
  }

  /** Does its work once, whether the process failed to start, exited or was killed. */
  #end(worker: Worker, how: string | number | null): void {
    if (!this.#workers.delete(worker)) return
    clearTimeout(worker.timer)
    const { job, preempted } = worker
    if (job !== null && !this.#closed && preempted && !job.isAhead) this.#enqueue(job, true)
    else job?.reject(this.#closed ? stopping() : reasonOfEnd(worker, how))
    this.#next()
  }

  /**
   * Preempts a task that runs ahead, if any other waits. If a bucket waits and has none running, preempts the newest task of a bucket with
   * more than its share, or the one that has used the most of its time. That doubles with each preemption, so that every task ends.
   */
  #preempt(): void {
    if (this.#closed || this.#waiting.length === 0) return
    const others = this.#waiting.buckets().some((bucket) => this.#running(bucket) === 0)
    // The task that is preempted waits too. All calls share one timer.
    if (others && this.#preemptingAgain === null)
      this.#preemptingAgain = setTimeout(() => {
        this.#preemptingAgain = null
        this.#preempt()
      }, preemptionDelay).unref()
    // One process at a time is ended.
    if ([...this.#workers].some(({ process }) => process.killed)) return
    const victim = this.#findVictim(others)
    if (victim === undefined) return
    victim.preempted = true
    if (victim.job) victim.job.preemptions += 1
    victim.process.kill('SIGKILL')
  }

  /** `others`: whether a bucket waits that has no task running. */
  #findVictim(others: boolean): Worker | undefined {
    const ahead = this.#findAhead()
    if (ahead !== undefined || !others) return ahead
    const workers = [...this.#workers]
    return (
      workers.findLast(({ job }) => job !== null && this.#running(job.bucket) > this.#share) ??
      findOverdue(workers)
    )
  }

  #running(bucket: string): number {
    return [...this.#workers].filter(({ job }) => job?.bucket === bucket).length
  }

  #findAhead(): Worker | undefined {
    return [...this.#workers].find(({ job }) => job?.isAhead)
  }

  /** A killed process stays in the set until it exits, and must not get a task. */
  #findFree(): Worker | undefined {
    return [...this.#workers].find(({ job, process }) => job === null && isUsable(process))
  }

  #isIdle(): boolean {
    return (
      this.#waiting.length === 0 &&
      [...this.#workers].every(({ job, process }) => (job === null || job.isAhead) && isUsable(process))
    )
  }

  #reportIdle(): void {
    for (const resolve of this.#idleListeners.splice(0)) resolve()
  }
}

/** A job that has not begun, and its result. */
function newJob(given: Pick<Job, 'task' | 'bucket' | 'read' | 'isAhead'>): {
  readonly job: Job
  readonly result: Promise<PictureResult>
} {
  const { promise: result, resolve, reject } = Promise.withResolvers<PictureResult>()
  return { job: { ...given, preemptions: 0, startedAt: null, waiting: undefined, resolve, reject }, result }
}

const isUsable = (process: ChildProcess): boolean => process.connected && !process.killed

/** Ends the process after this time, unless a later call replaces it. Milliseconds. */
function endAfter(worker: Worker, time: number): void {
  clearTimeout(worker.timer)
  worker.timer = setTimeout(() => {
    worker.timedOut = worker.job !== null
    worker.process.kill('SIGKILL')
  }, time).unref()
}

/** Sends the bytes that a worker asks for. */
async function sendBytes({ job, process }: Worker, { position, length }: ReadRequest): Promise<void> {
  try {
    const bytes = await job?.read(position, Math.min(length, maxRead))
    if (bytes && process.connected)
      process.send({ type: 'bytes', bytes } satisfies ReadReply, () => undefined)
  } catch (error) {
    job?.reject(error instanceof Error ? error : new Error('a read failed', { cause: error }))
    process.kill('SIGKILL')
  }
}

function reasonOfEnd({ process, timedOut, preempted }: Worker, how: string | number | null): Error {
  if (preempted) return givenWay()
  // A process that failed to start is not the picture's fault.
  if (process.pid === undefined) {
    const message = `no process can be started: ${how}`
    return new PictureWorkersBusy(message, { cause: new Error(message) })
  }
  return new PictureOverLimits(`the process that decodes pictures ended: ${how}`, { isTimeout: timedOut })
}

/** The worker whose task has used the most of its time, if that is all of it. */
function findOverdue(workers: readonly Worker[]): Worker | undefined {
  const [most] = workers.toSorted((one, other) => usedTime(other) - usedTime(one))
  return most && usedTime(most) >= 1 ? most : undefined
}

/** The time that the task of a worker has used, as a share of that after which it may be preempted. */
const usedTime = ({ job }: Worker): number =>
  job === null || job.startedAt === null
    ? 0
    : (performance.now() - job.startedAt) / (preemptionDelay * 2 ** job.preemptions)

const noBytes: ReadBytes = () => Promise.reject(new Error('the task has its bytes'))

const givenWay = () => new PictureTaskPreempted('requests need the workers')
const stopping = () => new PictureWorkersBusy('the service is stopping')

/** Returns a function that starts a process of picture-worker.ts in the sandbox, and returns null if none can be started. */
export function createPictureProcesses(limits: ProcessLimits): () => ChildProcess | null {
  // The extension is .ts in the sources and .js in the published build.
  const file = new URL(`./picture-worker${extname(import.meta.url)}`, import.meta.url)
  let sandbox: PictureSandbox | null = null

  return () => {
    try {
      sandbox ??= findPictureSandbox()
      const child = fork(file, [String(limits.niceness), String(limits.memory)], {
        execPath: sandbox.execPath,
        execArgv: [
          ...sandbox.execArgv,
          // The worker cannot check its memory during synchronous work. Half, since buffers and the decoder are not in the heap.
          `--max-old-space-size=${Math.ceil(limits.memory / 2 ** 21)}`,
          // Few objects: the pixels are not in the heap.
          '--max-semi-space-size=2',
          ...(limits.startPrograms ? ['--allow-child-process'] : []),
        ],
        // One thread decodes. With an arena for each thread, glibc keeps more memory between two pictures.
        env: { ...sandbox.env, MALLOC_ARENA_MAX: '1' },
        serialization: 'advanced',
        // The decoder writes to standard error, which is the service's log.
        stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
      })
      preferForKill(child.pid)
      return child
    } catch {
      return null
    }
  }
}

/** If the memory runs out, the kernel ends this process rather than the service. Does nothing where the system has no such preference. */
function preferForKill(pid: number | undefined): void {
  try {
    if (pid !== undefined) writeFileSync(`/proc/${pid}/oom_score_adj`, '500')
  } catch {
    // Another system than Linux, or the process has ended.
  }
}

/** How to start a picture worker, with the restrictions that this system supports. */
export interface PictureSandbox {
  readonly execPath: string
  readonly execArgv: readonly string[]
  readonly env: Readonly<Record<string, string>>
  /** Restrictions that the kernel enforces, also for native code. */
  readonly enforced: { readonly noWrite: boolean; readonly noNetwork: boolean }
}

/**
 * The limits of Node.js: no write, no other process, no thread; on Node.js 26 no network either. They hold only for JavaScript,
 * and the decoder is native code.
 */
const nodeLimits = [
  '--permission',
  '--allow-addons',
  '--allow-fs-read=*',
  '--disable-warning=PERM0001',
  '--no-warnings',
]

/** Files of 0 bytes at most, no core dump, no new privileges. */
const noWrite = [
  '/usr/bin/prlimit',
  '--fsize=0',
  '--core=0',
  '--',
  '/usr/bin/setpriv',
  '--no-new-privs',
  '--',
]

/** A network namespace without devices. */
const noNetwork = ['/usr/bin/unshare', '--user', '--net', '--']

/**
 * The strictest sandbox that this system allows, tested with /bin/true. Throws if no process can be started now: otherwise
 * a weaker sandbox would stay in use.
 */
export function findPictureSandbox(): PictureSandbox {
  const tried = process.platform === 'linux' ? [[...noNetwork, ...noWrite], noWrite, noNetwork] : []
  const prefix = tried.find(works) ?? []
  const [execPath = process.execPath, ...args] = [...prefix, process.execPath]
  return {
    execPath,
    execArgv: [...args, ...nodeLimits],
    env: {},
    enforced: { noWrite: prefix.includes('--fsize=0'), noNetwork: prefix.includes('--net') },
  }
}

/** Errors that do not depend on the sandbox. */
const transientErrors: ReadonlySet<string> = new Set(['EMFILE', 'ENFILE', 'EAGAIN', 'ENOMEM', 'ETIMEDOUT'])

function works(prefix: readonly string[]): boolean {
  const [program = '', ...args] = [...prefix, '/bin/true']
  if (!prefix.filter((word) => word.startsWith('/')).every((path) => existsSync(path))) return false
  const { status, error } = spawnSync(program, args, { env: {}, stdio: 'ignore', timeout: 5_000 })
  if (transientErrors.has(errorCode(error) ?? '')) throw error
  return status === 0
}
