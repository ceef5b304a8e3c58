import { Worker } from 'node:worker_threads'
import { Fault } from '../core/fault.ts'
import { createSlab } from '../core/slab.ts'
import { fromRecord } from './error-record.ts'
import type { FromThread, NumberedRequest, ToThread } from './serve-batches.ts'

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
