import { type FileHandle, lstat, mkdir, open, rename, rmdir, unlink } from 'node:fs/promises'
import { Fault } from '../../core/fault.ts'

/** The calls by which the store changes its disk, so that a test can let one of them fail. */
export interface Files {
  readonly open: typeof open
  readonly lstat: (path: string) => ReturnType<typeof lstat>
  readonly mkdir: (path: string, mode: number) => Promise<void>
  readonly rename: typeof rename
  readonly rmdir: (path: string) => ReturnType<typeof rmdir>
  readonly unlink: typeof unlink
}

export const nodeFiles: Files = {
  open,
  lstat: (path) => lstat(path),
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
