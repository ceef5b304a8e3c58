import {
  close,
  closeSync,
  constants,
  fsync,
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
import { errorCode } from '../../core/error-code.ts'
import { Fault } from '../../core/fault.ts'

/** A new file, written sequentially. */
export interface NewFile {
  readonly write: (bytes: Uint8Array) => Promise<void>
  readonly sync: () => Promise<void>
  readonly close: () => Promise<void>
}

/** A directory opened for syncing. */
interface OpenDirectory {
  readonly sync: () => Promise<void>
  readonly close: () => void
}

/**
 * The store's calls to the file system; tests replace them to inject failures. Lookups of a name are synchronous: they
 * take 2 µs, and a call through libuv's thread pool takes 30 µs.
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

/** Uses a descriptor: each call of a FileHandle takes 5 µs more. */
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
    return { sync: () => syncDescriptor(descriptor), close: () => closeSync(descriptor) }
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
