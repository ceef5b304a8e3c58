import { symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { temporaryDirectory } from '../harness/directory.ts'
import { smallDisk } from '../harness/small-disk.ts'
import { type Fault, type Verdict, verdictOf } from './fault.ts'
import { faultOnStage, must, type Stage } from './stage.ts'

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

/** Each round on a disk of its own, since what it stores takes up room. */
const onSmallDisks = (
  title: string,
  megabytes: number,
  /** Gives back the data directory; `elsewhere` is on a disk with room. */
  layOut: (disk: string, elsewhere: string) => Promise<string>,
): Fault => ({
  title,
  async run(rounds, onRound) {
    const verdicts: Verdict[] = []
    for (let round = 0; round < rounds; round += 1) {
      await using disk = await smallDisk(megabytes)
      await using elsewhere = await temporaryDirectory()
      const directory = await layOut(disk.path, elsewhere.path)
      verdicts.push(await faultOnStage(title, fullDisk(disk), { directory }).run(1, onRound))
    }
    return verdictOf(...verdicts.map((verdict) => ({ tally: verdict, faults: verdict.faults })))
  },
})

export const fullBlobDisk = onSmallDisks(
  'the disk of the blobs is full, then not',
  4,
  async (disk, elsewhere) => {
    await symlink(join(elsewhere, 'catalog.db'), join(disk, 'catalog.db'))
    return disk
  },
)

export const fullCatalogDisk = onSmallDisks(
  'the disk of the catalog is full, then not',
  2,
  async (disk, elsewhere) => {
    await symlink(join(disk, 'catalog.db'), join(elsewhere, 'catalog.db'))
    return elsewhere
  },
)
