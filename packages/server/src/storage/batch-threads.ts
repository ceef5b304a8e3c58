import { getPriority, setPriority } from 'node:os'
import { type MessagePort, parentPort, receiveMessageOnPort, Worker } from 'node:worker_threads'
import { errorCode, Fault } from '../core/faults.ts'
import { Slab } from '../core/slab.ts'
import { TickBatch } from '../core/tasks.ts'

/**
 * How much higher the niceness of other threads is than that of the main thread. A larger step makes listings beside uploads
 * faster, and uploads beside a flood of listings slower (bench/RESULTS.md).
 */
export const nicenessStep = 8

/** The callbacks of one request. */
interface Pending<Output> {
  // A method, so that a caller whose request has a narrower output can pass the `resolve` of its promise.
  resolve(output: Output): void
  reject(error: Error): void
}

/** A worker thread that processes requests in batches: all requests of one event-loop tick are sent as one message. */
export interface BatchThread<Request, Output> {
  /** Calls one of the callbacks once. The thread takes over the buffers in `transfer`. */
  send(request: Request, pending: Pending<Output>, transfer?: readonly ArrayBuffer[]): void
  /** Requests that are queued or in progress. */
  pendingCount(): number
  /** Finishes the pending requests, then ends the thread. */
  close(): Promise<void>
}

interface BatchThreadOptions<Report> {
  /** The worker's module. */
  readonly file: URL
  readonly name: string
  readonly workerData: unknown
  /** Called with the report of each batch. */
  readonly onReport: (report: Report) => void
  /** Called once if the thread ends after it was ready and before `close`. Then all pending requests are rejected. */
  readonly onFailure: (error: Error) => void
}

/**
 * Starts a worker thread that calls serveBatches. Resolves when the thread is ready. Rejects if the thread throws or exits
 * before it is ready.
 */
export async function startBatchThread<Request, Output, Report>(
  options: BatchThreadOptions<Report>,
): Promise<BatchThread<Request, Output>> {
  const thread = new WorkerBatchThread<Request, Output, Report>(options)
  await thread.ready
  return thread
}

class WorkerBatchThread<Request, Output, Report> implements BatchThread<Request, Output> {
  readonly #options: BatchThreadOptions<Report>
  readonly #worker: Worker
  readonly #ready = Promise.withResolvers<void>()
  readonly #exited = Promise.withResolvers<void>()
  readonly #pending = new Slab<Pending<Output>>()
  readonly #queue = new TickBatch<NumberedRequest<Request>>((requests) => this.#postAll(requests))
  #transferQueue: ArrayBuffer[] = []
  #isReady = false
  #isClosing = false
  #failure: Error | null = null
  #thrown: unknown

  constructor(options: BatchThreadOptions<Report>) {
    this.#options = options
    const { file, name, workerData } = options
    // `execArgv`: some flags of the main program, such as --input-type, prevent the worker from starting.
    // `trackUnmanagedFds`: the main thread receives open files and closes them. Node must not close them when the thread ends.
    this.#worker = new Worker(file, { workerData, name, execArgv: [], trackUnmanagedFds: false })
    this.#worker.on('message', (message: FromThread<Output, Report>) => this.#receive(message))
    this.#worker.on('error', (error) => {
      this.#thrown = error
    })
    this.#worker.on('exit', (code) => this.#end(code))
  }

  get ready(): Promise<void> {
    return this.#ready.promise
  }

  send(request: Request, callbacks: Pending<Output>, transfer: readonly ArrayBuffer[] = []): void {
    // An HTTP request that runs longer than the shutdown timeout can still send requests to the thread.
    const refusal = this.#failure ?? (this.#isClosing ? isStopping() : null)
    if (refusal !== null) {
      callbacks.reject(refusal)
      return
    }
    const number = this.#pending.add(callbacks)
    this.#transferQueue.push(...transfer)
    this.#queue.add({ number, request })
  }

  pendingCount(): number {
    return this.#pending.size()
  }

  close(): Promise<void> {
    if (!this.#isClosing) {
      this.#isClosing = true
      this.#queue.flush()
      this.#post(null)
    }
    return this.#exited.promise
  }

  /** A request that cannot be copied fails alone: here an error would end the process. */
  #postAll(requests: readonly NumberedRequest<Request>[]): void {
    const transfer = this.#transferQueue
    this.#transferQueue = []
    try {
      this.#post(requests, transfer)
    } catch {
      const copied = requests.filter(({ number, request }) => {
        const error = copyError(request)
        if (error !== null) this.#pending.remove(number)?.reject(error)
        return error === null
      })
      this.#post(
        copied,
        transfer.filter((buffer) => !buffer.detached),
      )
    }
  }

  #post(message: ToThread<Request>, transfer: readonly ArrayBuffer[] = []): void {
    this.#worker.postMessage(message, transfer)
  }

  #receive(message: FromThread<Output, Report>): void {
    if (message === 'ready') {
      this.#isReady = true
      this.#ready.resolve()
      return
    }
    if (message.report !== undefined) this.#options.onReport(message.report)
    for (const outcome of message.outcomes) {
      const request = this.#pending.remove(outcome.number)
      if ('error' in outcome) request?.reject(fromRecord(outcome.error))
      else request?.resolve(outcome.output)
    }
  }

  #end(code: number): void {
    const { name, onFailure } = this.#options
    if (!this.#isReady) {
      this.#ready.reject(
        this.#thrown ?? new Error(`the thread ${name} exited with code ${code} before it was ready`),
      )
      return
    }
    this.#failure = new Error(`the thread ${name} has ended (exit code ${code})`, { cause: this.#thrown })
    if (!this.#isClosing) onFailure(this.#failure)
    for (const request of this.#pending.values()) request.reject(this.#failure)
    this.#pending.clear()
    this.#exited.resolve()
  }
}

/** Why a value cannot be sent to a thread; null if it can. */
function copyError(value: unknown): Error | null {
  try {
    structuredClone(value)
    return null
  } catch (cause) {
    return new Error('a request cannot be sent to its thread', { cause })
  }
}

const isStopping = (): Fault => new Fault('shutting-down', 'The service is stopping.')

/**
 * A thread that starts with its first request, which waits for it, because a thread delays the start of the service
 * and takes memory. Where it cannot start, that request fails and the next one tries again. After a thread that has ended unexpectedly,
 * the next request starts another one.
 */
export class OnDemandThread<Request, Output> implements Pick<BatchThread<Request, Output>, 'send' | 'close'> {
  readonly #start: (onEnd: () => void) => Promise<BatchThread<Request, Output>>
  #thread: BatchThread<Request, Output> | null = null
  #starting: Promise<BatchThread<Request, Output>> | null = null
  #isClosing = false

  /** `start` receives the callback that reports the end of the thread. */
  constructor(start: (onEnd: () => void) => Promise<BatchThread<Request, Output>>) {
    this.#start = start
  }

  send(request: Request, pending: Pending<Output>, transfer?: readonly ArrayBuffer[]): void {
    if (this.#isClosing) {
      pending.reject(isStopping())
    } else if (this.#thread) {
      this.#thread.send(request, pending, transfer)
    } else {
      this.#starting ??= this.#startOnce()
      this.#starting.then(
        (started) => started.send(request, pending, transfer),
        (error) => pending.reject(error),
      )
    }
  }

  async close(): Promise<void> {
    this.#isClosing = true
    await this.#starting?.catch(() => undefined)
    await this.#thread?.close()
  }

  async #startOnce(): Promise<BatchThread<Request, Output>> {
    try {
      this.#thread = await this.#start(() => {
        this.#thread = null
      })
      return this.#thread
    } finally {
      this.#starting = null
    }
  }
}

/** The result of one request. */
export type Outcome<Output> = { readonly output: Output } | { readonly error: unknown }

interface NumberedRequest<Request> {
  readonly number: number
  readonly request: Request
}

/** A list of requests, or null: finish the pending requests, then end. */
type ToThread<Request> = readonly NumberedRequest<Request>[] | null

type NumberedOutcome<Output> =
  | { readonly number: number; readonly output: Output }
  | { readonly number: number; readonly error: ErrorRecord }

/** The first message is `ready`; each later one holds the outcomes of one batch, and a report about it unless the batch failed. */
type FromThread<Output, Report> =
  | 'ready'
  | { readonly outcomes: readonly NumberedOutcome<Output>[]; readonly report?: Report }

/**
 * The worker's side of startBatchThread. Calls `handle` with all requests that have arrived; it calls `reply` once, with the
 * outcomes in the order of the requests. Batches may overlap where `handle` is asynchronous. If `handle` throws before it has replied, all
 * requests of the batch fail with this error and the thread continues. An error after the reply ends the thread.
 * `onClose` runs after the last batch.
 */
export function serveBatches<Request, Output, Report>(
  handle: (
    requests: readonly Request[],
    reply: (
      outcomes: readonly Outcome<Output>[],
      report: Report,
      /** Buffers in the outcomes that the other thread takes over. */
      transfer?: readonly ArrayBuffer[],
    ) => void,
  ) => void | Promise<void>,
  onClose: () => void = () => undefined,
): void {
  if (!parentPort) throw new Error('this module runs in a worker thread only')
  const server = new BatchServer(parentPort, handle, onClose)
  parentPort.on('message', (message: ToThread<Request>) => server.receive(message))
  parentPort.postMessage('ready')
}

type HandleBatch<Request, Output, Report> = Parameters<typeof serveBatches<Request, Output, Report>>[0]

class BatchServer<Request, Output, Report> {
  readonly #port: MessagePort
  readonly #handle: HandleBatch<Request, Output, Report>
  readonly #onClose: () => void
  #batchesInProgress = 0
  #isClosing = false

  constructor(port: MessagePort, handle: HandleBatch<Request, Output, Report>, onClose: () => void) {
    this.#port = port
    this.#handle = handle
    this.#onClose = onClose
  }

  /** Runs the requests of the message, and of all others that have arrived. */
  receive(first: ToThread<Request>): void {
    const batch: NumberedRequest<Request>[] = []
    let message: ToThread<Request> | undefined = first
    while (message) {
      batch.push(...message)
      message = receiveMessageOnPort(this.#port)?.message
    }
    if (message === null) this.#isClosing = true
    if (batch.length > 0) void this.#run(batch)
    else this.#closeIfDone()
  }

  async #run(batch: readonly NumberedRequest<Request>[]): Promise<void> {
    this.#batchesInProgress += 1
    const requests = batch.map(({ request }) => request)
    let hasReplied = false
    try {
      await this.#handle(requests, (outcomes, report, transfer) => {
        // The numbers of these requests may belong to later ones.
        if (hasReplied) throw new Error('a batch has two replies')
        hasReplied = true
        this.#post(
          { outcomes: batch.map(({ number }, index) => numbered(number, outcomes[index])), report },
          transfer,
        )
      })
    } catch (error) {
      if (hasReplied) throw error
      this.#post({ outcomes: batch.map(({ number }) => numbered(number, { error })) })
    }
    this.#batchesInProgress -= 1
    this.#closeIfDone()
  }

  #post(message: FromThread<Output, Report>, transfer: readonly ArrayBuffer[] = []): void {
    this.#port.postMessage(message, transfer)
  }

  #closeIfDone(): void {
    if (!this.#isClosing || this.#batchesInProgress > 0) return
    this.#onClose()
    this.#port.close()
  }
}

function numbered<Output>(number: number, outcome: Outcome<Output> | undefined): NumberedOutcome<Output> {
  if (outcome === undefined) throw new RangeError('a request of this batch has no outcome')
  return 'error' in outcome ? { number, error: toRecord(outcome.error) } : { number, output: outcome.output }
}

/** An error as plain data: the structured clone between threads drops `code`, `errcode` and the class of a Fault. */
interface ErrorRecord {
  readonly message: string
  readonly stack: string | undefined
  readonly fault: Pick<Fault, 'code' | 'parameters' | 'members'> | null
  /** `code` of system errors, `errcode` of SQLite errors, where present. */
  readonly codes: Readonly<Record<string, string | number>>
  readonly cause: ErrorRecord | null
}

function toRecord(thrown: unknown): ErrorRecord {
  const error = thrown instanceof Error ? thrown : new Error(String(thrown))
  const { message, stack, cause } = error
  return {
    message,
    stack,
    fault:
      error instanceof Fault
        ? { code: error.code, parameters: error.parameters, members: error.members }
        : null,
    codes: error instanceof Fault ? {} : codesOf(error),
    cause: cause instanceof Error ? toRecord(cause) : null,
  }
}

function codesOf(error: Error): Record<string, string | number> {
  const code = errorCode(error)
  const errcode = 'errcode' in error ? error.errcode : undefined
  return {
    ...(code !== null && { code }),
    ...(typeof errcode === 'number' && { errcode }),
  }
}

function fromRecord({ message, stack, fault, codes, cause: causeRecord }: ErrorRecord): Error {
  const cause = causeRecord === null ? {} : { cause: fromRecord(causeRecord) }
  const error =
    fault === null
      ? new Error(message, cause)
      : new Fault(fault.code, message, { ...cause, parameters: fault.parameters, members: fault.members })
  if (stack !== undefined) error.stack = stack
  return Object.assign(error, codes)
}

/**
 * Lowers the CPU priority of the calling thread. For threads that start on demand; cli/serve-process.ts does the same for those that
 * run at the start of the service.
 */
export function lowerOwnPriority(): void {
  if (process.platform !== 'linux') return
  try {
    setPriority(Math.min(getPriority(process.pid) + nicenessStep, 19))
  } catch {
    // Not permitted on some systems, and not required.
  }
}
