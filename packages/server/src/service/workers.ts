import cluster from 'node:cluster'
import { randomUUID } from 'node:crypto'
import { fileURLToPath } from 'node:url'
import type { Logger } from 'pino'
import { AggregatorRegistry } from 'prom-client'
import { ExplainedError } from '../core/faults.ts'
import { resolvesWithin } from '../core/tasks.ts'
import { Metrics } from '../http/metrics.ts'
import { deleteBlobs } from '../items/blob-deletion.ts'
import { createUploadLockTable, shareUploadLocks, type UploadLockTable } from '../uploads/upload-locks.ts'
import { urlSettings } from './bound-config.ts'
import type { Config } from './config.ts'
import {
  lockDirectory,
  type OpenData,
  openData,
  recoverData,
  type StartContext,
  settleData,
  startInSteps,
  startRemovals,
} from './data.ts'
import { checkReadinessOperation } from './monitoring.ts'
import { type ReloadableSettings, reloadableOf } from './reload.ts'
import { issueFirstToken, openSpace, type RequestLog, type Service } from './start.ts'
import { startWebhooks } from './start-webhooks.ts'
import { startExpirySweeps, startSweeps } from './sweeps.ts'
import {
  type CountChanges,
  createCountExchange,
  createReplies,
  type FromWorker,
  type MetricsSnapshot,
  type ServiceAddress,
  type ToWorker,
} from './worker-messages.ts'

/**
 * Starts the service as several processes: workers that handle requests, and this one, their parent. The parent holds the
 * lock of the data directory, recovers before a worker starts, removes expired data, owns the locks of uploads, and adds
 * the metrics up. Rejects as startService does.
 */
export async function startWorkers(
  config: Config,
  log: Logger,
  parts: {
    /** Of this process, which handles no requests. */
    readonly requestLog: Pick<RequestLog, 'dropped'>
    /** The module that a worker runs. */
    readonly program: URL
    /** Called when the service cannot continue; it must stop then. */
    readonly onFailure: (error: Error) => void
  },
): Promise<Service> {
  const metrics = new Metrics()
  metrics.watchLog(parts.requestLog.dropped)
  return startInSteps({ config, log, metrics, peers: null }, async (context) => {
    const { closers } = context
    lockDirectory(context)
    const data = await openData(context, parts.onFailure)
    await recoverData(context, data)
    await settleData(context, data)
    const remover = startRemovals(context, data)
    const locks = createUploadLockTable()
    const space = openSpace(context)
    let reloaded = reloadableOf(config)
    metrics.watchReadiness(
      checkReadinessOperation({ ...data, space, log, isReadOnly: () => reloaded.readOnly }),
    )
    await startSweeps(context, data, space)

    const service = createServiceMetrics(() => metrics.snapshot())
    const counts = createCountExchange<WorkerProcess>((worker, changes) => worker.sendCounts(changes))
    // The workers share the listening socket, and each accepts connections itself.
    cluster.schedulingPolicy = cluster.SCHED_NONE
    cluster.setupPrimary({ exec: fileURLToPath(parts.program), args: [], serialization: 'advanced' })
    const pool = createWorkerPool({
      ...config,
      log,
      fork(port) {
        const worker = forkWorker({
          ...{ port, locks, settings: reloaded },
          ...{ readMetrics: service.text, onCounts: counts.receive },
        })
        service.addWorker(worker)
        counts.join(worker)
        return worker
      },
      async onEnd(worker) {
        service.removeWorker(worker)
        counts.leave(worker)
        metrics.workerRestarts.inc()
        await cleanUpAfter(worker, context, data)
      },
      onFailure: parts.onFailure,
    })
    closers.add('the workers', () => pool.stop())
    const address = await pool.start()
    startExpirySweeps(context, data, {
      locks: { hold: shareUploadLocks(directLocks(locks)).hold, isHeld: locks.isHeld },
      remover,
    })
    startWebhooks(context, data, urlSettings(config, address.port))
    return {
      address,
      firstToken: await issueFirstToken(data.catalog),
      reload(settings) {
        log.level = settings.logLevel
        reloaded = settings
        pool.reload(settings)
      },
      stop: closers.closeAll,
    }
  })
}

/** Removes the temporary files of a worker, and completes its deletions. Other workers may do the latter at the same time. */
async function cleanUpAfter(
  { owner }: WorkerProcess,
  { log }: Pick<StartContext, 'log'>,
  { catalog, blobs, blobDeletion }: OpenData,
): Promise<void> {
  try {
    await blobs.recovery?.removeTemporary(owner)
    await deleteBlobs(blobDeletion, await catalog.tombstones())
  } catch (err) {
    log.warn({ err }, 'what a worker left stays until the next start')
  }
}

/** The locks, for requests of the parent. */
const directLocks = (table: UploadLockTable): Parameters<typeof shareUploadLocks>[0] => ({
  acquire(id, { abort, isStalled }) {
    const granted = Promise.withResolvers<void>()
    const claim = table.claim(id, {
      granted: granted.resolve,
      abort,
      async abortIfStalled() {
        if (!isStalled()) return false
        abort()
        return true
      },
    })
    return granted.promise.then(() => claim)
  },
  waitForWriter: table.waitForWriter,
})

/** Starts the workers, and starts a new one for each that ends. */
interface WorkerPool {
  /** Resolves when all workers listen. Rejects if one of them cannot be started. */
  start(): Promise<ServiceAddress>
  /** Passes settings to the workers that run. One that starts later gets them with its start. */
  reload(settings: ReloadableSettings): void
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

function createWorkerPool(parts: {
  readonly workers: number
  readonly port: number
  /** Milliseconds. */
  readonly shutdownTimeout: number
  readonly shutdownDelay: number
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
  let bound: ServiceAddress | null = null
  let { port } = parts
  /** Replacements of workers that ended before all workers listened. */
  const endedEarly: (() => Promise<void>)[] = []
  let failures = 0
  let hasStarted = false
  let stopping = false

  async function run(): Promise<ServiceAddress> {
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

    reload(settings) {
      for (const worker of running) worker.reload(settings)
    },

    async stop() {
      stopping = true
      for (const timer of timers) clearTimeout(timer)
      const ends = Promise.all([...running].map(({ ended }) => ended))
      for (const worker of running) worker.stop()
      if (await resolvesWithin(ends, parts.shutdownDelay + parts.shutdownTimeout + killDelay)) return
      for (const worker of running) worker.kill()
      await ends
    },
  }
}

/** A worker, as the parent sees it. */
interface WorkerProcess extends MetricsSource {
  /** The names of its temporary files begin with it. */
  readonly owner: string
  readonly pid: number | undefined
  /** Rejects with WorkerStartError if the worker reports an error or ends before it listens. */
  readonly listening: Promise<ServiceAddress>
  /** Resolves with the exit code or the signal when the process has ended. */
  readonly ended: Promise<string>
  /** Sends it counts of other workers. */
  sendCounts(changes: CountChanges): void
  reload(settings: ReloadableSettings): void
  /** Finishes the requests in progress and ends. */
  stop(): void
  kill(): void
}

/** Starts a worker. `cluster` has been set up. */
function forkWorker(parts: {
  readonly port: number
  readonly locks: UploadLockTable
  readonly settings: ReloadableSettings
  /** The metrics of all workers, as text. */
  readonly readMetrics: () => Promise<string>
  readonly onCounts: (worker: WorkerProcess, changes: CountChanges) => void
}): WorkerProcess {
  const owner = randomUUID()
  const listening = Promise.withResolvers<ServiceAddress>()
  const ended = Promise.withResolvers<string>()
  const claims = new Map<number, { release(): void }>()
  const aborts = createReplies<boolean>()
  const snapshots = createReplies<MetricsSnapshot>()
  const worker = cluster.fork()
  // A worker that has ended receives nothing; `ended` reports it.
  const send = (message: ToWorker) => {
    if (worker.isConnected()) worker.send(message, undefined, () => undefined)
  }
  let hasEnded = false

  function receive(message: FromWorker): void {
    switch (message.kind) {
      case 'ready':
        listening.resolve(message.address)
        return
      case 'failed':
        listening.reject(new WorkerStartError(message.message))
        return
      case 'claim-lock': {
        const { claim } = message
        const claimant = {
          granted: () => send({ kind: 'lock-granted', claim }),
          abort: () => send({ kind: 'abort-lock', claim }),
          abortIfStalled() {
            const { request, reply } = aborts.expect()
            send({ kind: 'abort-stalled-lock', claim, request })
            // If the worker has ended, its locks are released.
            return Promise.race([reply, ended.promise.then(() => true)])
          },
        }
        claims.set(claim, parts.locks.claim(message.id, claimant))
        return
      }
      case 'release-lock':
        claims.get(message.claim)?.release()
        claims.delete(message.claim)
        return
      case 'stalled-lock-aborted':
        aborts.resolve(message.request, message.aborted)
        return
      case 'wait-for-writer': {
        const { request } = message
        void parts.locks.waitForWriter(message.id).then(() => send({ kind: 'writer-waited', request }))
        return
      }
      case 'counts':
        parts.onCounts(self, message.changes)
        return
      case 'metrics-snapshot':
        snapshots.resolve(message.request, message.metrics)
        return
      case 'read-metrics': {
        const { request } = message
        void parts.readMetrics().then((text) => send({ kind: 'metrics-text', request, text }))
        return
      }
    }
  }

  function end(how: string): void {
    if (hasEnded) return
    hasEnded = true
    for (const { release } of claims.values()) release()
    claims.clear()
    listening.reject(new WorkerStartError(`a worker ended before it listened (${how})`))
    ended.resolve(how)
  }

  worker.on('message', receive)
  worker.on('exit', (code, signal) => end(signal ? String(signal) : `exit code ${code}`))
  // The process could not be started.
  worker.on('error', (error) => {
    if (worker.process.pid === undefined) end(error.message)
  })
  // It is handled by the callers of `listening` only if they wait.
  listening.promise.catch(() => undefined)
  send({ kind: 'start', owner, port: parts.port, settings: parts.settings })

  const self: WorkerProcess = {
    owner,
    pid: worker.process.pid,
    listening: listening.promise,
    ended: ended.promise,
    snapshotMetrics() {
      const { request, reply } = snapshots.expect()
      send({ kind: 'snapshot-metrics', request })
      return reply
    },
    sendCounts: (changes) => send({ kind: 'counts', changes }),
    reload: (settings) => send({ kind: 'reload', settings }),
    stop: () => send({ kind: 'stop' }),
    kill: () => void worker.process.kill('SIGKILL'),
  }
  return self
}

/** The start of a worker failed. The message contains the reason, and what to do about it if that is known. */
class WorkerStartError extends ExplainedError {
  override readonly name = 'WorkerStartError'
}

/** The metrics of all processes of the service. */
export interface ServiceMetrics {
  /** Reads the metrics of the workers, and adds them to those of the parent and of the workers that have ended. */
  text(): Promise<string>
  addWorker(worker: MetricsSource): void
  /** Keeps the counters of a worker that has ended, so that no sum decreases. */
  removeWorker(worker: MetricsSource): void
}

interface MetricsSource {
  snapshotMetrics(): Promise<MetricsSnapshot>
}

/** Milliseconds to wait for a worker. The last snapshot of a slower worker is used, and its new one at the next scrape. */
const readTimeout = 1_000

const counting: ReadonlySet<unknown> = new Set(['counter', 'histogram'])

/** `own` returns the metrics of the parent. */
export function createServiceMetrics(own: () => Promise<MetricsSnapshot>): ServiceMetrics {
  /** The last snapshot of each worker. Counts after it are lost when the worker is killed. */
  const snapshots = new Map<MetricsSource, MetricsSnapshot>()
  /** The counts of ended workers. */
  let ended: readonly MetricsSnapshot[] = []

  async function refresh(worker: MetricsSource): Promise<void> {
    const stored = worker.snapshotMetrics().then((metrics) => {
      // It may have ended since the request was sent.
      if (snapshots.has(worker)) snapshots.set(worker, metrics)
    })
    await resolvesWithin(stored, readTimeout)
  }

  async function mergeEnded(): Promise<void> {
    const before = ended
    if (before.length < 2) return
    const merged = await AggregatorRegistry.aggregate([...before]).getMetricsAsJSON()
    // Since the requests were sent, workers may have ended, and another call may have merged the same ones.
    if (before.every((one, at) => ended[at] === one)) ended = [merged, ...ended.slice(before.length)]
  }

  return {
    async text() {
      await Promise.all([...snapshots.keys()].map(refresh))
      await mergeEnded()
      const parent = (await own()).filter(isOfParent).map(firstIfOmitted)
      return AggregatorRegistry.aggregate([parent, ...snapshots.values(), ...ended]).metrics()
    },
    addWorker: (worker) => void snapshots.set(worker, []),
    removeWorker(worker) {
      const last = (snapshots.get(worker) ?? []).filter(({ type }) => counting.has(String(type)))
      snapshots.delete(worker)
      ended = [...ended, last]
    },
  }
}

/** Leaves out the event loop and the heap of the parent. The parent handles no requests, so they would distort the metrics of the workers. */
const isOfParent = ({ name }: MetricsSnapshot[number]): boolean => !name.startsWith('nodejs_')

/** The start time cannot be added up, so the start time of the parent is used for the service. */
const firstIfOmitted = (metric: MetricsSnapshot[number]): MetricsSnapshot[number] =>
  metric.aggregator === 'omit' ? { ...metric, aggregator: 'first' } : metric
