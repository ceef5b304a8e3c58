import {
  close,
  closeSync,
  constants,
  fsync,
  fsyncSync,
  lstatSync,
  openSync,
  open as openWithCallback,
  rename,
  type Stats,
  unlink,
  write,
} from 'node:fs'
import { type FileHandle, mkdir, open, rmdir } from 'node:fs/promises'
import { promisify } from 'node:util'
import { ExplainedError, errorCode, Fault } from '../../../core/faults.ts'

/** A new file, written sequentially. */
export interface NewFile {
  readonly write: (bytes: Uint8Array) => Promise<void>
  readonly sync: () => Promise<void>
  readonly close: () => Promise<void>
}

/** A directory opened for syncing. */
interface OpenDirectory {
  readonly sync: () => Promise<void>
  /** For the start of a service. Blocks. */
  readonly syncNow: () => void
  readonly close: () => void
}

/**
 * The store's calls to the file system; tests replace them to inject failures. Lookups of a name are synchronous: they
 * take less time than the way through libuv's thread pool.
 */
export interface Files {
  /** Throws if the path exists. */
  readonly create: (path: string) => Promise<NewFile>
  readonly open: typeof open
  /** Throws if the path is not a directory, or is a link. */
  readonly openDirectory: (path: string) => OpenDirectory
  /** Null if the path does not exist. */
  readonly lstat: (path: string) => Stats | null
  readonly mkdir: (path: string, mode: number) => Promise<void>
  readonly rename: (from: string, to: string) => Promise<void>
  readonly rmdir: (path: string) => Promise<void>
  readonly unlink: (path: string) => Promise<void>
}

const { O_RDONLY, O_WRONLY, O_CREAT, O_EXCL, O_DIRECTORY, O_NOFOLLOW } = constants
const openDescriptor = promisify(openWithCallback)
const writeDescriptor = promisify(write)
const syncDescriptor = promisify(fsync)
const closeDescriptor = promisify(close)

/** Uses a descriptor, whose calls cost less than those of a FileHandle. */
async function create(path: string): Promise<NewFile> {
  const descriptor = await openDescriptor(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600)
  let isSynced = false
  return {
    async write(bytes) {
      isSynced = false
      for (let done = 0; done < bytes.byteLength; ) {
        const { bytesWritten } = await writeDescriptor(descriptor, bytes, done, bytes.byteLength - done, null)
        done += bytesWritten
      }
    },
    async sync() {
      await syncDescriptor(descriptor)
      isSynced = true
    },
    async close() {
      // After a sync, close does not wait for the disk.
      if (isSynced) closeSync(descriptor)
      else await closeDescriptor(descriptor)
    },
  }
}

export const nodeFiles: Files = {
  create,
  open,
  openDirectory(path) {
    const descriptor = openSync(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW)
    return {
      sync: () => syncDescriptor(descriptor),
      syncNow: () => fsyncSync(descriptor),
      close: () => closeSync(descriptor),
    }
  },
  lstat: (path) => lstatSync(path, { throwIfNoEntry: false }) ?? null,
  mkdir: async (path, mode) => {
    await mkdir(path, { mode })
  },
  rename: promisify(rename),
  rmdir: (path) => rmdir(path),
  unlink: promisify(unlink),
}

export async function unlinkIfThere(files: Pick<Files, 'unlink'>, path: string): Promise<void> {
  try {
    await files.unlink(path)
  } catch (error) {
    if (errorCode(error) !== 'ENOENT') throw error
  }
}

/** Writes all of `bytes` at `position`. */
export async function writeWhole(file: FileHandle, bytes: Uint8Array, position: number): Promise<void> {
  for (let done = 0; done < bytes.byteLength; ) {
    const { bytesWritten } = await file.write(bytes, done, bytes.byteLength - done, position + done)
    done += bytesWritten
  }
}

/**
 * Maps a full disk or quota to Fault `storage-full`, and a lack of descriptors or memory to `overloaded`. Returns other
 * errors unchanged.
 */
export function asStorageFault(error: unknown): unknown {
  const code = errorCode(error)
  if (code === 'EMFILE' || code === 'ENFILE' || code === 'ENOMEM')
    return new Fault('overloaded', 'The service has no resources left for these bytes.', { cause: error })
  if (code !== 'ENOSPC' && code !== 'EDQUOT') return error
  return new Fault('storage-full', 'There is not enough free space for these bytes.', { cause: error })
}

/** What is at a path; `other` is anything that the store does not create, such as a symbolic link. */
export type EntryType = 'nothing' | 'directory' | 'file' | 'other'

/** Does not follow links. */
export function entryTypeAt(files: Pick<Files, 'lstat'>, path: string): EntryType {
  const status = files.lstat(path)
  if (status === null) return 'nothing'
  if (status.isDirectory()) return 'directory'
  return status.isFile() ? 'file' : 'other'
}

/** An entry in the store's directories that the store did not create. It is never read or followed (docs/interface.md B8). */
export class ForeignEntry extends ExplainedError {
  override readonly name = 'ForeignEntry'
}

/** Creates a file, calls `write`, and syncs it. Returns what `write` returned. Removes the file if anything fails. */
export async function createSyncedFile<Result>(
  files: Pick<Files, 'create' | 'unlink'>,
  path: string,
  write: (file: NewFile) => Promise<Result>,
): Promise<Result> {
  const file = await files.create(path)
  try {
    const result = await write(file)
    // A failed sync is not retried: the kernel may have dropped the pages that it could not write.
    await file.sync()
    await file.close()
    return result
  } catch (error) {
    await file.close().catch(() => undefined)
    await files.unlink(path).catch(() => undefined)
    throw error
  }
}

/** Syncs a directory before a service handles requests: it starts no threads of libuv's pool. */
export function syncDirectoryNow(files: Pick<Files, 'openDirectory'>, path: string): void {
  const directory = files.openDirectory(path)
  try {
    directory.syncNow()
  } finally {
    directory.close()
  }
}

export type DirectorySync = (directory: string) => Promise<void>

/**
 * Syncs directories. Calls for one directory share its next sync until that has started: a change is durable only after a
 * sync that started after the change.
 */
export function createDirectorySync(files: Pick<Files, 'openDirectory'>): DirectorySync {
  /** The next sync of each directory, not started yet. */
  const next = new Map<string, Promise<void>>()
  /** The sync in progress of each directory. */
  const running = new Map<string, Promise<void>>()

  async function syncOnce(directory: string): Promise<void> {
    const opened = files.openDirectory(directory)
    try {
      await opened.sync()
    } finally {
      opened.close()
    }
  }

  async function begin(directory: string): Promise<void> {
    // Yields in any case, so that calls of the same tick share this sync.
    await running.get(directory)?.catch(() => undefined)
    next.delete(directory)
    const sync = syncOnce(directory)
    running.set(directory, sync)
    try {
      await sync
    } finally {
      if (running.get(directory) === sync) running.delete(directory)
    }
  }

  return (directory) => {
    const waiting = next.get(directory)
    if (waiting !== undefined) return waiting
    const begun = begin(directory)
    next.set(directory, begun)
    return begun
  }
}

/** Receives the duration of each successful sync in seconds. */
export type OnSync = (seconds: number) => void

export const timeSyncs = (files: Files, onSync: OnSync): Files => ({
  ...files,
  async create(path) {
    const file = await files.create(path)
    return { ...file, sync: timed(file.sync, onSync) }
  },
  openDirectory(path) {
    const directory = files.openDirectory(path)
    return { ...directory, sync: timed(directory.sync, onSync) }
  },
  async open(...args) {
    const file = await files.open(...args)
    file.sync = timed(file.sync.bind(file), onSync)
    return file
  },
})

const timed = (sync: () => Promise<void>, onSync: OnSync) => async () => {
  const startedAt = performance.now()
  await sync()
  onSync((performance.now() - startedAt) / 1000)
}
