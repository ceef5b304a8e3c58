import { parentPort, receiveMessageOnPort } from 'node:worker_threads'
import { type ErrorRecord, toRecord } from './error-record.ts'

/** The result of one request. */
export type Outcome<Output> = { readonly output: Output } | { readonly error: unknown }

export interface NumberedRequest<Request> {
  readonly number: number
  readonly request: Request
}

/** A list of requests, or null: finish the pending requests, then end. */
export type ToThread<Request> = readonly NumberedRequest<Request>[] | null

type NumberedOutcome<Output> =
  | { readonly number: number; readonly output: Output }
  | { readonly number: number; readonly error: ErrorRecord }

/** The first message is `ready`; each later one holds the outcomes of one batch, and a report about it unless the batch failed. */
export type FromThread<Output, Report> =
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
