import { extname, join } from 'node:path'
import { Fault } from '../../../core/faults.ts'
import { type BatchThread, startBatchThread } from '../../batch-threads.ts'
import type { OpenBlob } from '../blobs.ts'
import { openMemoryBlob } from '../memory-blob.ts'
import type { FileToRead, ReadFile } from './file-reader-thread.ts'
import { toBlob } from './stored-files.ts'

/** The number of files that can wait for the disk at the same time. */
const maxThreads = 4

/** The maximum number of files that a thread is given at once. It reads them in turn, so a slow file delays at most three others. */
const maxBatch = 4

export interface FileReaders {
  /** Opens or reads a file in one of the threads. Null if nothing is stored under the name. Throws Fault as `BlobStore.open`. */
  open(file: FileToRead): Promise<OpenBlob | null>
  /** Finishes the pending reads. */
  close(): Promise<void>
}

interface Pending {
  readonly file: FileToRead
  readonly resolve: (output: ReadFile) => void
  readonly reject: (error: Error) => void
}

/** A thread, and how many reads it has not finished. */
interface Reader {
  readonly thread: BatchThread<FileToRead, ReadFile>
  pending: number
}

/**
 * Threads that read stored files, so that a slow disk delays no other request. An idle thread takes an equal share of the
 * waiting reads; while all threads are busy, another one is started. A thread that has ended unexpectedly gets no further reads.
 */
export function createFileReaders(): FileReaders {
  let readers: readonly Reader[] = []
  const waiting: Pending[] = []
  let starting: Promise<void> | null = null
  let isClosing = false

  function dispatch(): void {
    for (const reader of readers) if (reader.pending === 0) give(reader)
    if (waiting.length > 0 && readers.length < maxThreads) starting ??= start()
  }

  function give(reader: Reader): void {
    const share = Math.min(maxBatch, Math.ceil(waiting.length / readers.length))
    for (const { file, resolve, reject } of waiting.splice(0, share)) {
      reader.pending += 1
      const done = () => {
        reader.pending -= 1
        if (reader.pending === 0) dispatch()
      }
      reader.thread.send(file, {
        resolve(output) {
          done()
          resolve(output)
        },
        reject(error) {
          done()
          reject(error)
        },
      })
    }
  }

  async function start(): Promise<void> {
    try {
      // The extension is .ts in the sources and .js in the published build.
      const file = new URL(`./file-reader-thread${extname(import.meta.url)}`, import.meta.url)
      const thread = await startBatchThread<FileToRead, ReadFile, null>({
        file,
        name: 'file-reader',
        workerData: null,
        onReport: () => undefined,
        onFailure() {
          readers = readers.filter((reader) => reader.thread !== thread)
        },
      })
      readers = [...readers, { thread, pending: 0 }]
    } catch (error) {
      const failure = error instanceof Error ? error : new Error(String(error))
      // If other threads run, they take the waiting reads.
      if (readers.length === 0) for (const { reject } of waiting.splice(0)) reject(failure)
    } finally {
      starting = null
    }
    dispatch()
  }

  const read = (file: FileToRead) =>
    new Promise<ReadFile>((resolve, reject) => {
      if (isClosing) return reject(new Fault('shutting-down', 'The service is stopping.'))
      waiting.push({ file, resolve, reject })
      dispatch()
    })

  return {
    async open(file) {
      const found = await read(file)
      return found instanceof Uint8Array
        ? openMemoryBlob(found)
        : toBlob(found, join(file.root, file.shard, file.name))
    },

    async close() {
      isClosing = true
      await starting
      await Promise.all(readers.map(({ thread }) => thread.close()))
    },
  }
}
