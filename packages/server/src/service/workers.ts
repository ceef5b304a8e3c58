import cluster, { type Worker } from 'node:cluster'
import { randomUUID } from 'node:crypto'
import { fileURLToPath } from 'node:url'
import type { Logger } from 'pino'
import { ExplainedError } from '../core/faults.ts'
import type { UploadId } from '../core/ids.ts'
import { resolvesWithin } from '../core/tasks.ts'
import { Metrics } from '../http/metrics.ts'
import { deleteBlobs } from '../items/blob-deletion.ts'
import { type SharedLocks, SharedUploadLocks, UploadLockTable } from '../uploads/upload-locks.ts'
import { urlSettings } from './bound-config.ts'
import type { Config } from './config.ts'
import {
  checkDataHistory,
  lockDirectory,
  type OpenData,
  openData,
  recoverData,
  type StartContext,
  startBucketRemovals,
  startInSteps,
  startRemovals,
} from './data.ts'
import { checkReadinessOperation } from './monitoring.ts'
import { newOwnSecret } from './own-requests.ts'
import { type ReloadableSettings, reloadableOf } from './reload.ts'
import { type MetricsSource, ServiceMetrics } from './service-metrics.ts'
import { issueFirstToken, openSpace, type RequestLog, type Service } from './start.ts'
import { openScanner } from './start-scanner.ts'
import { startWebhooks } from './start-webhooks.ts'
import { startExpirySweeps, startSweeps, watchFreeSpace } from './sweeps.ts'
import {
  type CountChanges,
  CountExchange,
  type FromWorker,
  type MetricsSnapshot,
  type Ports,
  Replies,
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
    await checkDataHistory(context, data)
    const remover = startRemovals(context, data)
    const deleter = startBucketRemovals(context, data)
    const locks = new UploadLockTable()
    const space = openSpace(context)
    let reloaded = reloadableOf(config)
    metrics.watchReadiness(
      checkReadinessOperation({
        ...{ ...data, space, log },
        scanner: config.scanFailure === 'refuse' ? openScanner(config) : null,
        isReadOnly: () => reloaded.readOnly,
      }),
    )
    await startSweeps(context, data)
    watchFreeSpace(context, space)

    const service = new ServiceMetrics(() => metrics.snapshot())
    const ownSecret = newOwnSecret()
    const counts = new CountExchange<WorkerProcess>((worker, changes) => worker.sendCounts(changes))
    // The workers share the listening socket, and each accepts connections itself.
    cluster.schedulingPolicy = cluster.SCHED_NONE
    cluster.setupPrimary({ exec: fileURLToPath(parts.program), args: [], serialization: 'advanced' })
    const pool = new WorkerPool({
      ...config,
      log,
      fork(ports) {
        const worker = forkWorker({
          ...{ ownSecret, ports, locks, settings: reloaded },
          readMetrics: () => service.text(),
          onCounts: (from, changes) => counts.receive(from, changes),
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
      locks: new ParentUploadLocks(locks),
      remover,
      deleter,
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
      stop: () => closers.closeAll(),
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
    await deleteBlobs(blobDeletion, await catalog.listTombstones())
  } catch (err) {
    log.warn({ err }, 'what a worker left stays until the next start')
  }
}

/** The locks of all workers, as the parent sees them, which knows all holders. */
class ParentUploadLocks extends SharedUploadLocks {
  readonly #table: UploadLockTable

  constructor(table: UploadLockTable) {
    super(new TableLocks(table))
    this.#table = table
  }

  isHeld(id: UploadId): boolean {
    return this.#table.isHeld(id)
  }
}

class TableLocks implements SharedLocks {
  readonly #table: UploadLockTable

  constructor(table: UploadLockTable) {
    this.#table = table
  }

  acquire(
    id: UploadId,
    { abort, isStalled }: Parameters<SharedLocks['acquire']>[1],
  ): ReturnType<SharedLocks['acquire']> {
    const granted = Promise.withResolvers<void>()
    const claim = this.#table.claim(id, {
      granted: granted.resolve,
      abort,
      async abortIfStalled() {
        if (!isStalled()) return false
        abort()
        return true
      },
    })
    return granted.promise.then(() => claim)
  }

  waitForWriter(id: UploadId): Promise<void> {
    return this.#table.waitForWriter(id)
  }
}

/** Milliseconds before a worker that ended within `shortLife` is restarted for the first time; doubled for each further restart. */
const firstDelay = 250

/** Milliseconds. A worker that ends in less time counts as failed at its start. */
const shortLife = 1_000

/** Consecutive failed starts before `onFailure` is called. */
const maxFailures = 5

/** Milliseconds after the shutdown timeout until a worker is killed. */
const killDelay = 2_000

interface PoolParts extends Ports {
  readonly workers: number
  /** Milliseconds. */
  readonly shutdownTimeout: number
  readonly shutdownDelay: number
  readonly fork: (ports: Ports) => WorkerProcess
  readonly log: Pick<Logger, 'error' | 'info'>
  /** Called when a worker has ended, before another one is started. Not called during a stop. Must not reject. */
  readonly onEnd: (worker: WorkerProcess) => Promise<void>
  /** Called once, after too many consecutive failed starts of workers. */
  readonly onFailure: (error: Error) => void
}

/** Starts the workers, and starts a new one for each that ends. */
class WorkerPool {
  readonly #parts: PoolParts
  readonly #running = new Set<WorkerProcess>()
  /** When each worker began to listen, by performance.now(). */
  readonly #listening = new Map<WorkerProcess, number>()
  /** Those of workers that will be started. */
  readonly #timers = new Set<NodeJS.Timeout>()
  /** Only the bound ports are known after the start, where the configured ones are 0. */
  #bound: ServiceAddress | null = null
  #ports: Ports
  /** Replacements of workers that ended before all workers listened. */
  readonly #endedEarly: (() => Promise<void>)[] = []
  #failures = 0
  #hasStarted = false
  #stopping = false

  constructor(parts: PoolParts) {
    this.#parts = parts
    this.#ports = parts
  }

  /** Resolves when all workers listen. Rejects if one of them cannot be started. */
  async start(): Promise<ServiceAddress> {
    const [first] = await Promise.all(Array.from({ length: this.#parts.workers }, () => this.#run()))
    this.#hasStarted = true
    for (const replaceLate of this.#endedEarly) void replaceLate()
    if (first === undefined) throw new RangeError('a service has at least one worker')
    return first
  }

  /** Passes settings to the workers that run. One that starts later gets them with its start. */
  reload(settings: ReloadableSettings): void {
    for (const worker of this.#running) worker.reload(settings)
  }

  /** Lets all workers finish their requests, and waits until they have ended. */
  async stop(): Promise<void> {
    const { shutdownDelay, shutdownTimeout } = this.#parts
    this.#stopping = true
    for (const timer of this.#timers) clearTimeout(timer)
    const ends = Promise.all([...this.#running].map(({ ended }) => ended))
    for (const worker of this.#running) worker.stop()
    if (await resolvesWithin(ends, shutdownDelay + shutdownTimeout + killDelay)) return
    for (const worker of this.#running) worker.kill()
    await ends
  }

  /** Starts a worker, and resolves when it listens. */
  async #run(): Promise<ServiceAddress> {
    // Workers with the same configured ports share their sockets; when none is left, the bound ports are bound again.
    if (this.#bound !== null && this.#listening.size === 0) this.#ports = this.#bound
    const { port, s3Port } = this.#ports
    const worker = this.#parts.fork({ port, s3Port })
    this.#running.add(worker)
    void worker.ended.then((how) => this.#onEnd(worker, how))
    const address = await worker.listening
    this.#listening.set(worker, performance.now())
    this.#bound ??= address
    // The last worker that listened has ended while this one was starting, and the port was a free one.
    if (address.port !== this.#bound.port || address.s3Port !== this.#bound.s3Port) worker.kill()
    return this.#bound
  }

  async #onEnd(worker: WorkerProcess, how: string): Promise<void> {
    const lived = performance.now() - (this.#listening.get(worker) ?? performance.now())
    this.#running.delete(worker)
    this.#listening.delete(worker)
    if (this.#stopping) return
    if (this.#hasStarted) await this.#replace(worker, how, lived)
    else this.#endedEarly.push(() => this.#replace(worker, how, lived))
  }

  /** `lived` is the time for which it listened. Milliseconds. */
  async #replace(worker: WorkerProcess, how: string, lived: number): Promise<void> {
    const { log, onEnd, onFailure } = this.#parts
    this.#failures = lived < shortLife ? this.#failures + 1 : 0
    log.error({ worker: worker.pid, how }, 'a worker ended; another one is started')
    await onEnd(worker)
    if (this.#stopping) return
    if (this.#failures >= maxFailures) {
      this.#stopping = true
      return onFailure(
        new Error(`${this.#failures} workers ended at once after their start, the last one with ${how}`),
      )
    }
    const timer = setTimeout(
      () => {
        this.#timers.delete(timer)
        // If it ends before it listens, it is replaced again.
        this.#run().catch(() => undefined)
      },
      this.#failures === 0 ? 0 : firstDelay * 2 ** (this.#failures - 1),
    )
    this.#timers.add(timer)
  }
}

interface WorkerParts {
  readonly ownSecret: string
  readonly ports: Ports
  readonly locks: UploadLockTable
  readonly settings: ReloadableSettings
  /** The metrics of all workers, as text. */
  readonly readMetrics: () => Promise<string>
  readonly onCounts: (worker: WorkerProcess, changes: CountChanges) => void
}

/** Starts a worker. `cluster` has been set up. */
function forkWorker(parts: WorkerParts): WorkerProcess {
  const worker = new WorkerProcess(cluster.fork(), parts)
  worker.start()
  return worker
}

/** A worker, as the parent sees it. */
class WorkerProcess implements MetricsSource {
  readonly #worker: Worker
  readonly #parts: WorkerParts
  /** The names of its temporary files begin with it. */
  readonly owner = randomUUID()
  readonly #listening = Promise.withResolvers<ServiceAddress>()
  readonly #ended = Promise.withResolvers<string>()
  #hasEnded = false
  /** The locks of its uploads, and its claims that wait for one. */
  readonly #claims = new Map<number, { release(): void }>()
  readonly #aborts = new Replies<boolean>()
  readonly #snapshots = new Replies<MetricsSnapshot>()

  constructor(worker: Worker, parts: WorkerParts) {
    this.#worker = worker
    this.#parts = parts
  }

  start(): void {
    const worker = this.#worker
    worker.on('message', (message: FromWorker) => this.#receive(message))
    worker.on('exit', (code, signal) => this.#end(signal ? String(signal) : `exit code ${code}`))
    // The process could not be started.
    worker.on('error', (error) => {
      if (worker.process.pid === undefined) this.#end(error.message)
    })
    // It is handled by the callers of `listening` only if they wait.
    this.listening.catch(() => undefined)
    const { ownSecret, ports, settings } = this.#parts
    this.#send({ kind: 'start', owner: this.owner, ownSecret, ports, settings })
  }

  get pid(): number | undefined {
    return this.#worker.process.pid
  }

  /** Rejects with WorkerStartError if the worker reports an error or ends before it listens. */
  get listening(): Promise<ServiceAddress> {
    return this.#listening.promise
  }

  /** Resolves with the exit code or the signal when the process has ended. */
  get ended(): Promise<string> {
    return this.#ended.promise
  }

  snapshotMetrics(): Promise<MetricsSnapshot> {
    const { request, reply } = this.#snapshots.expect()
    this.#send({ kind: 'snapshot-metrics', request })
    return reply
  }

  /** Sends it counts of other workers. */
  sendCounts(changes: CountChanges): void {
    this.#send({ kind: 'counts', changes })
  }

  reload(settings: ReloadableSettings): void {
    this.#send({ kind: 'reload', settings })
  }

  /** Finishes the requests in progress and ends. */
  stop(): void {
    this.#send({ kind: 'stop' })
  }

  kill(): void {
    this.#worker.process.kill('SIGKILL')
  }

  /** A worker that has ended receives nothing; `ended` reports it. */
  #send(message: ToWorker): void {
    if (this.#worker.isConnected()) this.#worker.send(message, undefined, () => undefined)
  }

  #receive(message: FromWorker): void {
    const { locks, onCounts, readMetrics } = this.#parts
    switch (message.kind) {
      case 'ready':
        this.#listening.resolve(message.address)
        return
      case 'failed':
        this.#listening.reject(new WorkerStartError(message.message))
        return
      case 'claim-lock':
        this.#claimLock(message)
        return
      case 'release-lock':
        this.#claims.get(message.claim)?.release()
        this.#claims.delete(message.claim)
        return
      case 'stalled-lock-aborted':
        this.#aborts.resolve(message.request, message.aborted)
        return
      case 'wait-for-writer': {
        const { request } = message
        void locks.waitForWriter(message.id).then(() => this.#send({ kind: 'writer-waited', request }))
        return
      }
      case 'counts':
        onCounts(this, message.changes)
        return
      case 'metrics-snapshot':
        this.#snapshots.resolve(message.request, message.metrics)
        return
      case 'read-metrics': {
        const { request } = message
        void readMetrics().then((text) => this.#send({ kind: 'metrics-text', request, text }))
        return
      }
    }
  }

  #claimLock({ claim, id }: Extract<FromWorker, { readonly kind: 'claim-lock' }>): void {
    const claimant = {
      granted: () => this.#send({ kind: 'lock-granted', claim }),
      abort: () => this.#send({ kind: 'abort-lock', claim }),
      abortIfStalled: () => {
        const { request, reply } = this.#aborts.expect()
        this.#send({ kind: 'abort-stalled-lock', claim, request })
        // If the worker has ended, its locks are released.
        return Promise.race([reply, this.ended.then(() => true)])
      },
    }
    this.#claims.set(claim, this.#parts.locks.claim(id, claimant))
  }

  #end(how: string): void {
    if (this.#hasEnded) return
    this.#hasEnded = true
    for (const claim of this.#claims.values()) claim.release()
    this.#claims.clear()
    this.#listening.reject(new WorkerStartError(`a worker ended before it listened (${how})`))
    this.#ended.resolve(how)
  }
}

/** The start of a worker failed. The message contains the reason, and what to do about it if that is known. */
class WorkerStartError extends ExplainedError {
  override readonly name = 'WorkerStartError'
}
