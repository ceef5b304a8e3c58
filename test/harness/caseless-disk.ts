import { execFile } from 'node:child_process'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { temporaryDirectory } from './directory.ts'
import { needTools } from './tools.ts'

const run = promisify(execFile)

/** An exFAT file system, which does not distinguish upper and lower case and has no links, mounted for the test. Requires root. */
export async function caselessDisk() {
  needTools('mkfs.exfat', 'mount.exfat-fuse', 'losetup')
  const directory = await temporaryDirectory()
  const [image, path] = [join(directory.path, 'image'), join(directory.path, 'disk')]
  await mkdir(path)
  await run('truncate', ['-s', '16M', image])
  await run('mkfs.exfat', [image])
  const device = (await run('losetup', ['--find', '--show', image])).stdout.trim()
  await run('mount.exfat-fuse', [device, path])
  return {
    path,
    async [Symbol.asyncDispose]() {
      await run('umount', [path])
      await run('losetup', ['--detach', device])
      await directory[Symbol.asyncDispose]()
    },
  }
}

export async function canMountCaseless(): Promise<boolean> {
  try {
    await using _ = await caselessDisk()
    return true
  } catch {
    return false
  }
}
