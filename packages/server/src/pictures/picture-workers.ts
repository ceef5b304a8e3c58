import { type ChildProcess, fork, spawnSync } from 'node:child_process'
import { existsSync, writeFileSync } from 'node:fs'
import { extname } from 'node:path'
import { errorCode } from '../core/faults.ts'
import {
  createPictureQueue,
  PictureOverLimits,
  PictureTaskPreempted,
  PictureWorkersBusy,
} from './picture-queue.ts'
import {
  maxRead,
  type PictureResult,
  type PictureTask,
  type ReadReply,
  type ReadRequest,
  type Ready,
} from './picture-task.ts'

export interface PictureWorkers {
  /**
   * Runs a task for a bucket; buckets take turns. `read` reads bytes of the file if the task does not have them. Throws PictureOverLimits,
   * PictureWorkersBusy and the errors of `read`.
   */
  run(task: PictureTask, bucket?: string, read?: ReadBytes): Promise<PictureResult>
  /**
   * Runs a task that no request needs yet. It never waits for a process. Throws PictureTaskPreempted if a task of `run` waits or runs, if no
   * process is free, or if a later task of `run` has waited for the preemption delay; and as `run`.
   */
  runAhead(task: PictureTask): Promise<PictureResult>
  /** Resolves when no task of `run` waits or runs and no process is being ended, or when the workers are closed. */
  whenIdle(): Promise<void>
  /** Ends all workers, also busy ones. */
  close(): void
}

/** Reads bytes that are in the file. */
export type ReadBytes = (position: number, length: number) => Promise<Uint8Array>

interface Job {
  readonly bucket: string
  readonly task: PictureTask
  readonly read: ReadBytes
  readonly isAhead: boolean
  /** How often it was preempted, and when it began (`performance.now`). */
  preemptions: number
  startedAt: number
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

/**
 * A pool of processes that run one task each, started on demand and ended when idle. A bucket may use all workers while no
 * other bucket waits; otherwise at most half of them.
 */
export function createPictureWorkers(limits: {
  /** Processes in parallel. */
  readonly workers: number
  /** Tasks that may wait; more are rejected. */
  readonly queue: number
  /** Milliseconds that a task may wait. */
  readonly queueTimeout: number
  /** Milliseconds for one task, without the start of its process. */
  readonly timeout: number
  /** Bytes for one process. */
  readonly memory: number
  /** 0 to 19. */
  readonly niceness: number
  /** Whether the processes may start programs, which inherit their restrictions. */
  readonly startPrograms?: boolean
}): PictureWorkers {
  const waiting = createPictureQueue<Job>(limits.queue)
  const share = Math.max(1, Math.floor(limits.workers / 2))
  const workers = new Set<Worker>()
  const startProcess = createPictureProcesses(limits)
  let closed = false
  let preemptingAgain: NodeJS.Timeout | null = null
  const idleListeners: (() => void)[] = []

  /** Null if no process can be started. */
  function start(): Worker | null {
    const child = startProcess()
    if (child === null) return null
    const timer = setTimeout(() => undefined)
    const worker: Worker = { process: child, job: null, preempted: false, timedOut: false, timer }
    workers.add(worker)
    child.on('message', (result: PictureResult | ReadRequest | Ready) => {
      if (result.outcome === 'ready') return void (worker.job && endAfter(worker, limits.timeout))
      if (result.outcome === 'read') return void sendBytes(worker, result)
      worker.job?.resolve(result)
      worker.job = null
      endWhenIdle(worker)
      next()
    })
    // Runs once, whether the process failed to start, exited or was killed.
    const onEnd = (how: string | number | null) => {
      if (!workers.delete(worker)) return
      clearTimeout(worker.timer)
      if (worker.job !== null && !closed && worker.preempted && !worker.job.isAhead) enqueue(worker.job, true)
      else worker.job?.reject(reasonOfEnd(worker, how))
      next()
    }
    child.once('error', ({ message }) => onEnd(message))
    child.once('exit', (code, signal) => onEnd(signal ?? code))
    return worker
  }

  function reasonOfEnd({ process, timedOut, preempted }: Worker, how: string | number | null): Error {
    if (closed) return stopping()
    if (preempted) return givenWay()
    // A process that failed to start is not the picture's fault.
    if (process.pid === undefined) {
      const message = `no process can be started: ${how}`
      return new PictureWorkersBusy(message, { cause: new Error(message) })
    }
    return new PictureOverLimits(`the process that decodes pictures ended: ${how}`, { isTimeout: timedOut })
  }

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

  const endAfter = (worker: Worker, time: number) => {
    clearTimeout(worker.timer)
    worker.timer = setTimeout(() => {
      worker.timedOut = worker.job !== null
      worker.process.kill('SIGKILL')
    }, time).unref()
  }
  const endWhenIdle = (worker: Worker) => endAfter(worker, idleTime)

  const running = (bucket: string) => [...workers].filter(({ job }) => job?.bucket === bucket).length

  const findAhead = () => [...workers].find(({ job }) => job?.isAhead)

  const isIdle = () =>
    waiting.length === 0 &&
    [...workers].every(
      ({ job, process }) => (job === null || job.isAhead) && process.connected && !process.killed,
    )

  const reportIdle = () => {
    for (const resolve of idleListeners.splice(0)) resolve()
  }

  /** A killed process stays in the set until it exits, and must not get a task. */
  const findFree = () =>
    [...workers].find(({ job, process }) => job === null && process.connected && !process.killed)

  /** Gives the task to this process, or to a new one. */
  function begin(job: Job, free: Worker | undefined): void {
    const worker = free ?? start()
    if (worker === null) {
      job.reject(new PictureWorkersBusy('no process can be started'))
      return
    }
    clearTimeout(job.waiting)
    worker.job = job
    job.startedAt = performance.now()
    // The time of the task begins when the process is ready.
    endAfter(worker, free ? limits.timeout : limits.timeout + startTime)
    // If sending fails, the process ends, and `onEnd` reports it.
    if (worker.process.connected) worker.process.send(job.task, () => undefined)
  }

  function next(): void {
    if (closed) return
    if (idleListeners.length > 0 && isIdle()) reportIdle()
    if (waiting.length === 0) return
    const free = findFree()
    if (free === undefined && workers.size >= limits.workers) return
    const job = waiting.take(running, share)
    if (job === null) return
    begin(job, free)
    next()
  }

  /**
   * Preempts a task that runs ahead, if any other waits. If a bucket waits and has none running, preempts the newest task of a bucket with
   * more than its share, or the one that has used the most of its time. That doubles with each preemption, so that every task ends.
   */
  function preempt(): void {
    if (closed || waiting.length === 0) return
    const others = waiting.buckets().some((bucket) => running(bucket) === 0)
    // The task that is preempted waits too. All calls share one timer.
    if (others && preemptingAgain === null)
      preemptingAgain = setTimeout(() => {
        preemptingAgain = null
        preempt()
      }, preemptionDelay).unref()
    if ([...workers].some(({ process }) => process.killed)) return
    const victim =
      findAhead() ??
      [...workers].findLast(({ job }) => others && job !== null && running(job.bucket) > share) ??
      (others ? findOverdue() : undefined)
    if (victim === undefined) return
    victim.preempted = true
    if (victim.job) victim.job.preemptions += 1
    victim.process.kill('SIGKILL')
  }

  /** The worker whose task has used the most of its time, if that is all of it. */
  function findOverdue(): Worker | undefined {
    const usedBy = ({ job }: Worker) =>
      job === null ? 0 : (performance.now() - job.startedAt) / (preemptionDelay * 2 ** job.preemptions)
    const [most] = [...workers].toSorted((one, other) => usedBy(other) - usedBy(one))
    return most && usedBy(most) >= 1 ? most : undefined
  }

  function enqueue(job: Job, first = false): void {
    waiting.add(job, first)
    job.waiting = setTimeout(() => {
      if (waiting.remove(job)) job.reject(new PictureWorkersBusy('the queue timeout expired'))
    }, limits.queueTimeout).unref()
  }

  return {
    run: (task, bucket = '', read = noBytes) =>
      new Promise((resolve, reject) => {
        if (closed) return reject(stopping())
        const job = {
          bucket,
          task,
          read,
          isAhead: false,
          preemptions: 0,
          startedAt: 0,
          waiting: undefined,
          resolve,
          reject,
        }
        enqueue(job)
        next()
        // A task that runs ahead gives way, so no request is refused because of it.
        const excess = findAhead() === undefined ? 0 : 1
        waiting.overflow(job, excess)?.reject(new PictureWorkersBusy('the queue is full'))
        if (waiting.length > 0) setTimeout(preempt, preemptionDelay).unref()
      }),
    runAhead: (task) =>
      new Promise((resolve, reject) => {
        if (closed) return reject(stopping())
        const free = findFree()
        if (!isIdle() || (free === undefined && workers.size >= limits.workers)) return reject(givenWay())
        const job = {
          bucket: '',
          task,
          read: noBytes,
          isAhead: true,
          preemptions: 0,
          startedAt: 0,
          waiting: undefined,
          resolve,
          reject,
        }
        begin(job, free)
      }),
    whenIdle: () => new Promise((resolve) => (closed || isIdle() ? resolve() : idleListeners.push(resolve))),
    close() {
      closed = true
      reportIdle()
      for (const job of waiting.clear()) job.reject(stopping())
      for (const { process } of workers) process.kill('SIGKILL')
    },
  }
}

const noBytes: ReadBytes = () => Promise.reject(new Error('the task has its bytes'))

const givenWay = () => new PictureTaskPreempted('requests need the workers')
const stopping = () => new PictureWorkersBusy('the service is stopping')

/** Returns a function that starts a process of picture-worker.ts in the sandbox, and returns null if none can be started. */
export function createPictureProcesses(limits: {
  /** Bytes for one process. */
  readonly memory: number
  /** 0 to 19. */
  readonly niceness: number
  /** Whether the processes may start programs, which inherit their restrictions. */
  readonly startPrograms?: boolean
}): () => ChildProcess | null {
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
        // One thread decodes. With an arena for each thread, glibc keeps a third more memory between two pictures.
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
