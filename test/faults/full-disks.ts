import { execFile } from 'node:child_process'
import { rm, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { temporaryDirectory } from '../harness/directory.ts'
import type { Fault } from './fault.ts'
import { faultOnStage, must, type Stage } from './stage.ts'

const run = promisify(execFile)

/** A disk of its own that holds little; only root may mount it. */
async function smallDisk(megabytes: number) {
  const directory = await temporaryDirectory()
  await run('mount', ['-t', 'tmpfs', '-o', `size=${megabytes}m`, 'tmpfs', directory.path])
  const ballast = join(directory.path, 'ballast')
  return {
    path: directory.path,
    /** Leaves no room for another byte. */
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

const refused = 507

/** Fills a disk: uploads are refused with 507 sooner or later, what is there stays readable, and all is well after it. */
const fullDisk =
  (disk: { fill(): Promise<void>; free(): Promise<void> }) =>
  async ({ clients, ledger, life }: Stage): Promise<void> => {
    const ways = [clients.raw, clients.form, clients.pieces]
    for (const way of ways) must('there is room', [201, 204].includes(await way(life())))
    await disk.fill()
    for (const way of ways) {
      let status = 0
      // The log of the catalog may have room left for some commits.
      for (let tries = 0; tries < 300 && status !== refused; tries += 1) status = await way(life())
      must(`a full disk is a 507, not ${status}`, status === refused)
    }
    must('nothing but 204 or 507 answers a delete', [204, refused].includes(await clients.remove(life())))
    // Everything is listed and its bytes are read.
    await ledger.check(life())
    await disk.free()
    await clients.resumeAll(life())
    for (const way of [...ways, clients.remove])
      must('there is room again', [200, 201, 204].includes(await way(life())))
  }

/** The service keeps its catalog elsewhere, by a link. */
export const fullBlobDisk: Fault = {
  title: 'the disk of the blobs is full, then not',
  async run(rounds, onRound) {
    await using disk = await smallDisk(4)
    await using elsewhere = await temporaryDirectory()
    await symlink(join(elsewhere.path, 'catalog.db'), join(disk.path, 'catalog.db'))
    const at = { directory: disk.path }
    return await faultOnStage(this.title, fullDisk(disk), at).run(rounds, onRound)
  },
}

export const fullCatalogDisk: Fault = {
  title: 'the disk of the catalog is full, then not',
  async run(rounds, onRound) {
    await using disk = await smallDisk(2)
    await using directory = await temporaryDirectory()
    await writeFile(join(disk.path, 'catalog.db'), '')
    await symlink(join(disk.path, 'catalog.db'), join(directory.path, 'catalog.db'))
    return await faultOnStage(this.title, fullDisk(disk), { directory: directory.path }).run(rounds, onRound)
  },
}
