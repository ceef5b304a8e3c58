import { execFile } from 'node:child_process'
import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { temporaryDirectory } from './directory.ts'

const run = promisify(execFile)

/** A file system of this size, mounted for the test; `inodes` limits its number of files. Requires root. */
export async function smallDisk(megabytes: number, inodes?: number) {
  const directory = await temporaryDirectory()
  await run('mount', [
    '-t',
    'tmpfs',
    '-o',
    `size=${megabytes}m${inodes === undefined ? '' : `,nr_inodes=${inodes}`}`,
    'tmpfs',
    directory.path,
  ])
  const ballast = join(directory.path, 'ballast')
  return {
    path: directory.path,
    /** Fills the disk completely. */
    async fill() {
      await run('dd', ['if=/dev/zero', `of=${ballast}`, 'bs=4k']).catch(() => undefined)
    },
    free: () => rm(ballast, { force: true }),
    /** Creates empty files until no further file can be created. Returns a function that removes some of them. */
    async useInodes(): Promise<() => Promise<void>> {
      const names: string[] = []
      for (;;) {
        const name = join(directory.path, `inode-${names.length}`)
        const isCreated = await writeFile(name, '').then(
          () => true,
          () => false,
        )
        if (!isCreated) break
        names.push(name)
      }
      return async () => {
        for (const name of names) await rm(name)
      }
    },
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
