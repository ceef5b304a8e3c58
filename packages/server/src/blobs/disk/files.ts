import { closeSync, constants, fsync, lstatSync, openSync, type Stats } from 'node:fs'
import { type FileHandle, mkdir, open, rename, rmdir, unlink } from 'node:fs/promises'
import { promisify } from 'node:util'
import { Fault } from '../../core/fault.ts'

/** A directory that was opened to be synced. */
export interface OpenDirectory {
  readonly sync: () => Promise<void>
  readonly close: () => void
}

/**
 * The calls by which the store changes its disk, so that a test can let one of them fail. Those that only look at a
 * name are made at once: they take two microseconds, and a turn in the pool of threads takes thirty.
 */
export interface Files {
  readonly open: typeof open
  /** Throws where anything but a directory stands, links too. */
  readonly openDirectory: (path: string) => OpenDirectory
  readonly lstat: (path: string) => Stats
  readonly mkdir: (path: string, mode: number) => Promise<void>
  readonly rename: typeof rename
  readonly rmdir: (path: string) => ReturnType<typeof rmdir>
  readonly unlink: typeof unlink
}

const { O_RDONLY, O_DIRECTORY, O_NOFOLLOW } = constants
const syncDescriptor = promisify(fsync)

export const nodeFiles: Files = {
  open,
  openDirectory(path) {
    const descriptor = openSync(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW)
    return { sync: () => syncDescriptor(descriptor), close: () => closeSync(descriptor) }
  },
  lstat: (path) => lstatSync(path),
  mkdir: async (path, mode) => {
    await mkdir(path, { mode })
  },
  rename,
  rmdir: (path) => rmdir(path),
  unlink,
}

/** The system's name of an error, such as `ENOENT`; null for errors that are not the system's. */
export function systemCode(error: unknown): string | null {
  if (!(error instanceof Error) || !('code' in error)) return null
  return typeof error.code === 'string' ? error.code : null
}

export async function unlinkIfThere(files: Pick<Files, 'unlink'>, path: string): Promise<void> {
  try {
    await files.unlink(path)
  } catch (error) {
    if (systemCode(error) !== 'ENOENT') throw error
  }
}

/** All of `bytes`, at `position` or behind what was written last. */
export async function writeWhole(
  file: FileHandle,
  bytes: Uint8Array,
  position: number | null,
): Promise<void> {
  for (let done = 0; done < bytes.byteLength; ) {
    const at = position === null ? null : position + done
    const { bytesWritten } = await file.write(bytes, done, bytes.byteLength - done, at)
    done += bytesWritten
  }
}

/** Turns a disk or quota that is full into Fault `storage-full`; any other error stays as it is. */
export function asStorageFault(error: unknown): unknown {
  const code = systemCode(error)
  if (code !== 'ENOSPC' && code !== 'EDQUOT') return error
  return new Fault('storage-full', 'The service has no room left for these bytes.', { cause: error })
}
