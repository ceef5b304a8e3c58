import { once } from 'node:events'
import { extname } from 'node:path'
import { Worker } from 'node:worker_threads'
import { Fault } from '../../core/fault.ts'
import type { MediaId } from '../../core/media-id.ts'
import { asStorageFault } from './files.ts'
import type { FromPlacingThread, PlacedFile, PlacingError, ToPlacingThread } from './placing-thread.ts'
import type { OnSync } from './timed-files.ts'

/** The thread that puts files in place. */
export interface PlacingThread {
  /**
   * Puts the bytes of a small file, or a synced file at this path, in place; durable when it resolves. The bytes are the
   * thread's from now on. Throws Fault `storage-full`; a new file is gone then, one at a path is where it was, or gone.
   */
  place(id: MediaId, content: Uint8Array<ArrayBuffer> | string): Promise<void>
  /** Finishes what was asked before. */
  close(): Promise<void>
}

interface Waiting {
  readonly resolve: () => void
  readonly reject: (error: unknown) => void
}

interface Outgoing extends PlacedFile {
  readonly content: Uint8Array<ArrayBuffer> | string
}

/** `onFailure` is called once, when the thread ends without having been closed; `onSync` with the seconds of each sync. */
export async function startPlacingThread(
  directory: string,
  onFailure: (error: Error) => void,
  onSync: OnSync,
): Promise<PlacingThread> {
  // The extension is .ts in the sources and .js in the published build.
  const file = new URL(`./placing-thread${extname(import.meta.url)}`, import.meta.url)
  // Flags of the main program, such as --input-type, would keep the thread from starting.
  const worker = new Worker(file, { workerData: { directory }, name: 'file-writer', execArgv: [] })
  await once(worker, 'message')

  const waiting = new Map<number, Waiting>()
  let outbox: Outgoing[] = []
  let lastNumber = 0
  let closing: Promise<void> | null = null
  let failure: Error | null = null

  const post = (message: ToPlacingThread, given: ArrayBuffer[]) => worker.postMessage(message, given)
  const flush = () => {
    const given = outbox.flatMap(({ content }) => (typeof content === 'string' ? [] : content.buffer))
    if (outbox.length > 0) post(outbox, given)
    outbox = []
  }

  worker.on('message', ({ placed, syncs }: FromPlacingThread) => {
    for (const seconds of syncs) onSync(seconds)
    for (const { number, error } of placed) {
      const file = waiting.get(number)
      waiting.delete(number)
      if (error === null) file?.resolve()
      else file?.reject(asStorageFault(errorFrom(error)))
    }
  })

  let thrown: unknown
  worker.on('error', (error) => {
    thrown = error
  })
  const ended = new Promise<void>((resolve) => {
    worker.on('exit', () => {
      failure = new Error('the thread that writes files has ended', { cause: thrown })
      for (const { reject } of waiting.values()) reject(failure)
      waiting.clear()
      if (!closing) onFailure(failure)
      resolve()
    })
  })

  return {
    place(id, content) {
      if (failure ?? closing) return Promise.reject(failure ?? new Error('the store is closed'))
      return new Promise((resolve, reject) => {
        lastNumber++
        waiting.set(lastNumber, { resolve, reject })
        // All files of one turn of the event loop travel, and are put in place, together.
        if (outbox.push({ number: lastNumber, id, content }) === 1) setImmediate(flush)
      })
    },

    close() {
      if (!closing) {
        flush()
        post(null, [])
        closing = ended
      }
      return closing
    },
  }
}

function errorFrom({ message, stack, code }: PlacingError): Error {
  if (code === 'storage-unavailable') return new Fault(code, message)
  const error = new Error(message)
  if (stack !== undefined) error.stack = stack
  return code === undefined ? error : Object.assign(error, { code })
}
