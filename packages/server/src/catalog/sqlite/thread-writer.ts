import { once } from 'node:events'
import { extname, join } from 'node:path'
import { Worker } from 'node:worker_threads'
import type { NumberedChange } from './batch.ts'
import type { Change, ChangeKind, Output } from './changes.ts'
import { fromRecord } from './error-record.ts'
import { explainOpening } from './usable-data.ts'
import type { Writer } from './writer.ts'
import type { FromWriter, ToWriter } from './writer-thread.ts'

interface Waiting {
  // A method, so that the narrower output of one kind fits; numbers pair each answer with its own change.
  resolve(output: Output): void
  reject(error: Error): void
}

/**
 * Starts the writer thread. `onFailure` is called once, when the thread ends without having been closed; `onCommit` with
 * the seconds of each transaction.
 */
export async function startThreadWriter(
  directory: string,
  onFailure: (error: Error) => void,
  onCommit: (seconds: number) => void,
): Promise<Writer> {
  // The extension is .ts in the sources and .js in the published build.
  const file = new URL(`./writer-thread${extname(import.meta.url)}`, import.meta.url)
  // Flags of the main program, such as --input-type, would keep the thread from starting.
  const worker = new Worker(file, { workerData: { directory }, name: 'catalog-writer', execArgv: [] })
  await once(worker, 'message').catch((error: unknown) => {
    throw explainOpening(join(directory, 'catalog.db'), error)
  })

  const waiting = new Map<number, Waiting>()
  let outbox: NumberedChange[] = []
  let lastNumber = 0
  let closing: Promise<void> | null = null
  let failure: Error | null = null

  const post = (message: ToWriter) => worker.postMessage(message)
  const flush = () => {
    if (outbox.length > 0) post(outbox)
    outbox = []
  }

  worker.on('message', ({ answers, seconds }: FromWriter) => {
    onCommit(seconds)
    for (const answer of answers) {
      const change = waiting.get(answer.number)
      waiting.delete(answer.number)
      if ('error' in answer) change?.reject(fromRecord(answer.error))
      else change?.resolve(answer.output)
    }
  })

  let thrown: unknown
  worker.on('error', (error) => {
    thrown = error
  })
  const ended = new Promise<void>((resolve) => {
    worker.on('exit', () => {
      failure = new Error('the thread that writes the catalog has ended', { cause: thrown })
      for (const change of waiting.values()) change.reject(failure)
      waiting.clear()
      if (!closing) onFailure(failure)
      resolve()
    })
  })

  return {
    apply<K extends ChangeKind>(change: Change<K>) {
      if (failure ?? closing) return Promise.reject(failure ?? new Error('the catalog is closed'))
      return new Promise<Output<K>>((resolve, reject) => {
        lastNumber++
        waiting.set(lastNumber, { resolve, reject })
        // All changes of one turn of the event loop travel, and mostly commit, together.
        if (outbox.push({ number: lastNumber, change }) === 1) setImmediate(flush)
      })
    },

    waiting: () => waiting.size,

    close() {
      if (!closing) {
        flush()
        post(null)
        closing = ended
      }
      return closing
    },
  }
}
