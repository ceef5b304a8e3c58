import type { Logger } from 'pino'
import { resolvesWithin } from '../../core/resolves-within.ts'
import type { ListeningWorker } from './messages.ts'
import type { WorkerProcess } from './worker-process.ts'

/** Starts the workers, and starts a new one for each that ends. */
export interface WorkerPool {
  /** Resolves when all workers listen. Rejects if one of them cannot be started. */
  start(): Promise<ListeningWorker>
  /** Lets all workers finish their requests, and waits until they have ended. */
  stop(): Promise<void>
}

/** Milliseconds before a worker that ended within `shortLife` is restarted for the first time; doubled for each further restart. */
const firstDelay = 250

/** Milliseconds. A worker that ends in less time counts as failed at its start. */
const shortLife = 1_000

/** Consecutive failed starts before `onFailure` is called. */
const maxFailures = 5

/** Milliseconds after the shutdown timeout until a worker is killed. */
const killDelay = 2_000

export function createWorkerPool(parts: {
  readonly workers: number
  readonly port: number
  /** Milliseconds. */
  readonly shutdownTimeout: number
  readonly fork: (port: number) => WorkerProcess
  readonly log: Pick<Logger, 'error' | 'info'>
  /** Called when a worker has ended, before another one is started. Not called during a stop. Must not reject. */
  readonly onEnd: (worker: WorkerProcess) => Promise<void>
  /** Called once, after too many consecutive failed starts of workers. */
  readonly onFailure: (error: Error) => void
}): WorkerPool {
  const { fork, log } = parts
  const running = new Set<WorkerProcess>()
  /** When each worker began to listen, by performance.now(). */
  const listening = new Map<WorkerProcess, number>()
  const timers = new Set<NodeJS.Timeout>()
  /** Only the bound port is known after the start, where the configured one is 0. */
  let bound: ListeningWorker | null = null
  let { port } = parts
  /** Replacements of workers that ended before all workers listened. */
  const endedEarly: (() => Promise<void>)[] = []
  let failures = 0
  let hasStarted = false
  let stopping = false

  async function run(): Promise<ListeningWorker> {
    // Workers with the same configured port share its socket; when none is left, the bound port is bound again.
    if (bound !== null && listening.size === 0) port = bound.port
    const worker = fork(port)
    running.add(worker)
    void worker.ended.then(async (how) => {
      const lived = performance.now() - (listening.get(worker) ?? performance.now())
      running.delete(worker)
      listening.delete(worker)
      if (stopping) return
      if (hasStarted) await replace(worker, how, lived)
      else endedEarly.push(() => replace(worker, how, lived))
    })
    const address = await worker.listening
    listening.set(worker, performance.now())
    bound ??= address
    // The last worker that listened has ended while this one was starting, and the port was a free one.
    if (address.port !== bound.port) worker.kill()
    return bound
  }

  /** `lived` is the time for which it listened. Milliseconds. */
  async function replace(worker: WorkerProcess, how: string, lived: number): Promise<void> {
    failures = lived < shortLife ? failures + 1 : 0
    log.error({ worker: worker.pid, how }, 'a worker ended; another one is started')
    await parts.onEnd(worker)
    if (stopping) return
    if (failures >= maxFailures) {
      stopping = true
      return parts.onFailure(
        new Error(`${failures} workers ended at once after their start, the last one with ${how}`),
      )
    }
    const timer = setTimeout(
      () => {
        timers.delete(timer)
        // If it ends before it listens, it is replaced again.
        run().catch(() => undefined)
      },
      failures === 0 ? 0 : firstDelay * 2 ** (failures - 1),
    )
    timers.add(timer)
  }

  return {
    async start() {
      const [first] = await Promise.all(Array.from({ length: parts.workers }, run))
      hasStarted = true
      for (const replaceLate of endedEarly) void replaceLate()
      if (first === undefined) throw new RangeError('a service has at least one worker')
      return first
    },

    async stop() {
      stopping = true
      for (const timer of timers) clearTimeout(timer)
      const ends = Promise.all([...running].map(({ ended }) => ended))
      for (const worker of running) worker.stop()
      if (await resolvesWithin(ends, parts.shutdownTimeout + killDelay)) return
      for (const worker of running) worker.kill()
      await ends
    },
  }
}
