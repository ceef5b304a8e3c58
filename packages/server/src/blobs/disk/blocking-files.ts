import {
  closeSync,
  constants,
  fsync,
  lstatSync,
  mkdirSync,
  openSync,
  renameSync,
  rmdirSync,
  unlinkSync,
  writeSync,
} from 'node:fs'
import { promisify } from 'node:util'
import type { WriterFiles } from './files.ts'

const { O_RDONLY, O_WRONLY, O_CREAT, O_EXCL, O_DIRECTORY, O_NOFOLLOW } = constants

const sync = promisify(fsync)

/**
 * Synchronous calls for the file writer thread. Only syncs use libuv's thread pool, where they wait for the disk in
 * parallel.
 */
export const blockingFiles: WriterFiles = {
  async create(path) {
    const descriptor = openSync(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600)
    return {
      async write(bytes) {
        for (let done = 0; done < bytes.byteLength; )
          done += writeSync(descriptor, bytes, done, bytes.byteLength - done, null)
      },
      sync: () => sync(descriptor),
      close: async () => closeSync(descriptor),
    }
  },
  openDirectory(path) {
    const descriptor = openSync(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW)
    return { sync: () => sync(descriptor), close: () => closeSync(descriptor) }
  },
  lstat: (path) => lstatSync(path, { throwIfNoEntry: false }) ?? null,
  mkdir: async (path, mode) => mkdirSync(path, { mode }),
  rename: async (from, to) => renameSync(from, to),
  rmdir: async (path) => rmdirSync(path),
  unlink: async (path) => unlinkSync(path),
}
