import { getPriority, setPriority } from 'node:os'
import { parentPort, receiveMessageOnPort, Worker } from 'node:worker_threads'
import { errorCode, Fault } from '../core/faults.ts'
import { createSlab } from '../core/slab.ts'

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

/**
 * Starts a worker thread that calls serveBatches. Resolves when the thread is ready. Rejects if the thread throws or exits
 * before it is ready.
 */
export async function startBatchThread<Request, Output, Report>(options: {
  /** The worker's module. */
  readonly file: URL
  readonly name: string
  readonly workerData: unknown
  /** Called with the report of each batch. */
  readonly onReport: (report: Report) => void
  /** Called once if the thread ends after it was ready and before `close`. Then all pending requests are rejected. */
  readonly onFailure: (error: Error) => void
}): Promise<BatchThread<Request, Output>> {
  const { file, name, workerData, onReport, onFailure } = options
  // `execArgv`: some flags of the main program, such as --input-type, prevent the worker from starting.
  // `trackUnmanagedFds`: the main thread receives open files and closes them. Node must not close them when the thread ends.
  const worker = new Worker(file, { workerData, name, execArgv: [], trackUnmanagedFds: false })
  const ready = Promise.withResolvers<void>()
  const exited = Promise.withResolvers<void>()
  const pending = createSlab<Pending<Output>>()
  let queue: NumberedRequest<Request>[] = []
  let transferQueue: ArrayBuffer[] = []
  let isReady = false
  let isClosing = false
  let failure: Error | null = null
  let thrown: unknown

  const post = (message: ToThread<Request>, transfer: readonly ArrayBuffer[] = []) =>
    worker.postMessage(message, transfer)

  function flush(): void {
    if (queue.length > 0) post(queue, transferQueue)
    queue = []
    transferQueue = []
  }

  worker.on('message', (message: FromThread<Output, Report>) => {
    if (message === 'ready') {
      isReady = true
      return ready.resolve()
    }
    if (message.report !== undefined) onReport(message.report)
    for (const outcome of message.outcomes) {
      const request = pending.remove(outcome.number)
      if ('error' in outcome) request?.reject(fromRecord(outcome.error))
      else request?.resolve(outcome.output)
    }
  })
  worker.on('error', (error) => {
    thrown = error
  })
  worker.on('exit', (code) => {
    if (!isReady)
      return ready.reject(
        thrown ?? new Error(`the thread ${name} exited with code ${code} before it was ready`),
      )
    failure = new Error(`the thread ${name} has ended (exit code ${code})`, { cause: thrown })
    if (!isClosing) onFailure(failure)
    for (const request of pending.values()) request.reject(failure)
    pending.clear()
    exited.resolve()
  })
  await ready.promise

  return {
    send(request, callbacks, transfer = []) {
      if (failure) return callbacks.reject(failure)
      // An HTTP request that runs longer than the shutdown timeout can still send requests to the thread.
      if (isClosing) return callbacks.reject(new Fault('shutting-down', 'The service is stopping.'))
      const number = pending.add(callbacks)
      transferQueue.push(...transfer)
      if (queue.push({ number, request }) === 1) setImmediate(flush)
    },

    pendingCount: pending.size,

    close() {
      if (!isClosing) {
        isClosing = true
        flush()
        post(null)
      }
      return exited.promise
    },
  }
}

/**
 * A thread that starts with its first request, which waits for it, because a thread delays the start of the service
 * and takes memory. Where it cannot start, that request fails and the next one tries again. After a thread that has ended unexpectedly,
 * the next request starts another one; `start` receives the callback that reports the end.
 */
export function startOnDemand<Request, Output>(
  start: (onEnd: () => void) => Promise<BatchThread<Request, Output>>,
): Pick<BatchThread<Request, Output>, 'send' | 'close'> {
  let thread: BatchThread<Request, Output> | null = null
  let starting: Promise<BatchThread<Request, Output>> | null = null
  let isClosing = false

  async function startOnce(): Promise<BatchThread<Request, Output>> {
    try {
      thread = await start(() => {
        thread = null
      })
      return thread
    } finally {
      starting = null
    }
  }

  return {
    send(request, pending, transfer) {
      if (isClosing) return pending.reject(new Fault('shutting-down', 'The service is stopping.'))
      if (thread) return thread.send(request, pending, transfer)
      starting ??= startOnce()
      starting.then((started) => started.send(request, pending, transfer), pending.reject)
    },

    async close() {
      isClosing = true
      await starting?.catch(() => undefined)
      await thread?.close()
    },
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
  const port = parentPort
  const post = (message: FromThread<Output, Report>, transfer: readonly ArrayBuffer[] = []) =>
    port.postMessage(message, transfer)
  let batchesInProgress = 0
  let isClosing = false

  async function run(batch: readonly NumberedRequest<Request>[]): Promise<void> {
    batchesInProgress += 1
    const requests = batch.map(({ request }) => request)
    let hasReplied = false
    try {
      await handle(requests, (outcomes, report, transfer) => {
        // The numbers of these requests may belong to later ones.
        if (hasReplied) throw new Error('a batch has two replies')
        hasReplied = true
        post(
          { outcomes: batch.map(({ number }, index) => numbered(number, outcomes[index])), report },
          transfer,
        )
      })
    } catch (error) {
      if (hasReplied) throw error
      post({ outcomes: batch.map(({ number }) => numbered(number, { error })) })
    }
    batchesInProgress -= 1
    closeIfDone()
  }

  function closeIfDone(): void {
    if (!isClosing || batchesInProgress > 0) return
    onClose()
    port.close()
  }

  port.on('message', (first: ToThread<Request>) => {
    const batch: NumberedRequest<Request>[] = []
    let message: ToThread<Request> | undefined = first
    while (message) {
      batch.push(...message)
      message = receiveMessageOnPort(port)?.message
    }
    if (message === null) isClosing = true
    if (batch.length > 0) void run(batch)
    else closeIfDone()
  })
  post('ready')
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
