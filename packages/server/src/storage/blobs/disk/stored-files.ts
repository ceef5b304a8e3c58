import { closeSync, constants, fstatSync, openSync, read } from 'node:fs'
import { basename, extname, join } from 'node:path'
import type { Readable } from 'node:stream'
import { errorCode, Fault, itemUnknown } from '../../../core/faults.ts'
import { type BatchThread, startBatchThread } from '../../batch-threads.ts'
import { hasLittleMemory } from '../../memory.ts'
import { BlobTruncatedError, type LocalBytes, type OpenBlob } from '../blobs.ts'
import { openMemoryBlob, shareContent, streamRange } from '../memory-blob.ts'
import { entryTypeAt, type Files, ForeignEntry, nodeFiles } from './files.ts'

/** Where a file of the store is: at `root`/`shard`/`name`. */
interface StoredFile {
  readonly root: string
  readonly shard: string
  readonly name: string
}

/** Throws ForeignEntry if it is not a directory: for a directory whose content the service protects. */
export function requireOwnDirectory(path: string, files: Pick<Files, 'lstat'> = nodeFiles): void {
  if (entryTypeAt(files, path) !== 'directory')
    throw new ForeignEntry(
      `${path} must be a directory, not a link or a file. The service cannot protect ${basename(path)} in another place.`,
    )
}

/** False if there is nothing. Throws ForeignEntry if it is not a directory. */
export function isOwnDirectory(path: string): boolean {
  const found = entryTypeAt(nodeFiles, path)
  if (found !== 'nothing' && found !== 'directory') throw new ForeignEntry(`${path} is not a directory`)
  return found === 'directory'
}

/** A file that must be there for another one to be served. Bytes. */
export interface RequiredFile extends StoredFile {
  readonly size: number
}

/** Whether it is a regular file of its size. False also for links, for links in its path, and if the disk fails. */
export function isStored({ root, shard, name, size }: RequiredFile): boolean {
  const directory = join(root, shard)
  try {
    if (!isOwnDirectory(root) || !isOwnDirectory(directory)) return false
    const status = nodeFiles.lstat(join(directory, name))
    return status?.isFile() === true && status.size === size
  } catch {
    return false
  }
}

// O_NONBLOCK: opening a named pipe would block. It has no effect on regular files.
const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK

/** Null if the file or its directory does not exist. Throws Fault `media-unknown` for a foreign entry (docs/interface.md B8). */
export async function openStoredFile(
  path: string,
  directoryExists: () => Promise<boolean>,
): Promise<OpenBlob | null> {
  try {
    return (await directoryExists()) ? toBlob(openRegularFile(path), path) : null
  } catch (error) {
    throw hideForeignEntry(error)
  }
}

/** Returns Fault `media-unknown` for a foreign entry, which is not revealed (docs/interface.md B8), and other errors unchanged. */
export const hideForeignEntry = (error: unknown): unknown =>
  error instanceof ForeignEntry ? itemUnknown({ cause: error }) : error

/** A file that is open for reading. */
export interface FileDescriptor {
  readonly descriptor: number
  readonly size: number
}

/** Null if the file does not exist. Throws ForeignEntry if it is not a regular file. */
export function openRegularFile(path: string): FileDescriptor | null {
  const descriptor = openDescriptor(path)
  if (descriptor === null) return null
  try {
    const status = fstatSync(descriptor)
    if (!status.isFile()) throw new ForeignEntry(`${path} is not a regular file`)
    return { descriptor, size: status.size }
  } catch (error) {
    closeSync(descriptor)
    throw error
  }
}

const toBlob = (file: FileDescriptor | null, path: string): OpenBlob | null =>
  file === null ? null : new FileBlob(file, path)

/** Bytes of an open file. */
class FileBlob implements OpenBlob {
  readonly size: number
  readonly content: { readonly type: 'file'; readonly path: string }
  readonly #descriptor: number
  #reading: Promise<void> | null = null
  #closing: Promise<void> | null = null

  constructor({ descriptor, size }: FileDescriptor, path: string) {
    this.size = size
    this.content = { type: 'file', path }
    this.#descriptor = descriptor
  }

  async share(): Promise<LocalBytes> {
    return shareContent(this.content)
  }

  read(into: Uint8Array, position: number): Promise<void> {
    if (this.#closing) throw new Error('read after close')
    this.#reading = readWhole(this.#descriptor, into, position)
    return this.#reading
  }

  stream(start: number, end: number): Readable {
    return streamRange(this, start, end)
  }

  close(): Promise<void> {
    this.#closing ??= this.#closeAfterRead()
    return this.#closing
  }

  /** The number of a closed descriptor may be reused, so a read in progress must end first. */
  async #closeAfterRead(): Promise<void> {
    await this.#reading?.catch(() => undefined)
    closeSync(this.#descriptor)
  }
}

function openDescriptor(path: string): number | null {
  try {
    return openSync(path, flags)
  } catch (error) {
    const code = errorCode(error)
    if (code === 'ENOENT') return null
    if (code === 'ELOOP' || code === 'ENXIO') throw new ForeignEntry(`${path} is not a regular file`)
    throw error
  }
}

/** Fills `into` with the bytes from `position` on. Rejects if the file ends first. */
export function readWhole(descriptor: number, into: Uint8Array, position: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const readFrom = (done: number): void =>
      read(descriptor, into, done, into.byteLength - done, position + done, (error, bytesRead) => {
        if (error) reject(error)
        else if (bytesRead === 0) reject(new BlobTruncatedError('a blob ended before its size'))
        else if (done + bytesRead < into.byteLength) readFrom(done + bytesRead)
        else resolve()
      })
    if (into.byteLength > 0) readFrom(0)
    else resolve()
  })
}

/** A file to open. */
export interface FileToRead extends StoredFile {
  /** Whether the root has an identity. If its file is missing too, the disk is not mounted: the result is Fault `storage-unavailable`. */
  readonly hasIdentity: boolean
  /** Files up to this length are read whole. Bytes. */
  readonly wholeUpTo: number
  /** Another file. If it is not stored, the result is null. */
  readonly required: RequiredFile | null
}

/** The whole bytes, or the open file, which the receiver closes. Null if nothing is stored under the name. */
export type ReadFile = Uint8Array<ArrayBuffer> | FileDescriptor | null

/** The number of files that can wait for the disk at the same time. */
const maxThreads = hasLittleMemory ? 1 : 4

/** The maximum number of files that a thread is given at once. It reads them in turn, so a slow file delays at most three others. */
const maxBatch = 4

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

// The extension is .ts in the sources and .js in the published build.
const readerThread = new URL(`./file-reader-thread${extname(import.meta.url)}`, import.meta.url)

/**
 * Threads that read stored files, so that a slow disk delays no other request. An idle thread takes an equal share of the
 * waiting reads; while all threads are busy, another one is started. A thread that has ended unexpectedly gets no further reads.
 */
export class FileReaders {
  #readers: readonly Reader[] = []
  readonly #waiting: Pending[] = []
  #starting: Promise<void> | null = null
  #isClosing = false

  /** Opens or reads a file in one of the threads. Null if nothing is stored under the name. Throws Fault as `BlobStore.open`. */
  async open(file: FileToRead): Promise<OpenBlob | null> {
    const found = await this.#read(file)
    return found instanceof Uint8Array
      ? openMemoryBlob(found)
      : toBlob(found, join(file.root, file.shard, file.name))
  }

  /** Finishes the pending reads. */
  async close(): Promise<void> {
    this.#isClosing = true
    await this.#starting
    await Promise.all(this.#readers.map(({ thread }) => thread.close()))
  }

  #read(file: FileToRead): Promise<ReadFile> {
    return new Promise((resolve, reject) => {
      if (this.#isClosing) return reject(new Fault('shutting-down', 'The service is stopping.'))
      this.#waiting.push({ file, resolve, reject })
      this.#dispatch()
    })
  }

  #dispatch(): void {
    for (const reader of this.#readers) if (reader.pending === 0) this.#give(reader)
    if (this.#waiting.length > 0 && this.#readers.length < maxThreads) this.#starting ??= this.#start()
  }

  /** Sends the reader its share of the waiting reads. */
  #give(reader: Reader): void {
    const share = Math.min(maxBatch, Math.ceil(this.#waiting.length / this.#readers.length))
    for (const { file, resolve, reject } of this.#waiting.splice(0, share)) {
      reader.pending += 1
      reader.thread.send(file, {
        resolve: (output) => {
          this.#finish(reader)
          resolve(output)
        },
        reject: (error) => {
          this.#finish(reader)
          reject(error)
        },
      })
    }
  }

  #finish(reader: Reader): void {
    reader.pending -= 1
    if (reader.pending === 0) this.#dispatch()
  }

  async #start(): Promise<void> {
    try {
      const thread = await startBatchThread<FileToRead, ReadFile, null>({
        file: readerThread,
        name: 'file-reader',
        workerData: null,
        onReport: () => undefined,
        onFailure: () => {
          this.#readers = this.#readers.filter((reader) => reader.thread !== thread)
        },
      })
      this.#readers = [...this.#readers, { thread, pending: 0 }]
    } catch (error) {
      const failure = error instanceof Error ? error : new Error(String(error))
      // If other threads run, they take the waiting reads.
      if (this.#readers.length === 0) for (const { reject } of this.#waiting.splice(0)) reject(failure)
    } finally {
      this.#starting = null
    }
    this.#dispatch()
  }
}
