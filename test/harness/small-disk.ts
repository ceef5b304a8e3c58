import { execFile } from 'node:child_process'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { temporaryDirectory } from './directory.ts'

const run = promisify(execFile)

/** A file system of this size, mounted for the test. Requires root. */
export async function smallDisk(megabytes: number) {
  const directory = await temporaryDirectory()
  await run('mount', ['-t', 'tmpfs', '-o', `size=${megabytes}m`, 'tmpfs', directory.path])
  const ballast = join(directory.path, 'ballast')
  return {
    path: directory.path,
    /** Fills the disk completely. */
    async fill() {
      await run('dd', ['if=/dev/zero', `of=${ballast}`, 'bs=4k']).catch(() => undefined)
    },
    free: () => rm(ballast, { force: true }),
    async [Symbol.asyncDispose]() {
      await run('umount', ['-l', directory.path])
      await directory[Symbol.asyncDispose]()
    },
  }
}

export async function canMount(): Promise<boolean> {
  try {
    await using _ = await smallDisk(1)
    return true
  } catch {
    return false
  }
}
