import { symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { temporaryDirectory } from '../harness/directory.ts'
import { smallDisk } from '../harness/small-disk.ts'
import { type Fault, type Verdict, verdictOf } from './fault.ts'
import { faultOnStage, must, type Stage } from './stage.ts'

const refused = 507

/** Fills a disk: uploads receive 507, stored items stay readable, and uploads succeed once there is room. */
const fullDisk =
  (disk: { fill(): Promise<void>; free(): Promise<void> }) =>
  async ({ clients, ledger, instance }: Stage): Promise<void> => {
    const ways = [clients.raw, clients.form, clients.resumable]
    for (const way of ways)
      must('uploads succeed before the disk is full', [201, 204].includes(await way(instance())))
    await disk.fill()
    for (const way of ways) {
      let status = 0
      // The write-ahead log may have room left for some commits.
      for (let tries = 0; tries < 300 && status !== refused; tries += 1) status = await way(instance())
      must(`a full disk gets a 507, not ${status}`, status === refused)
    }
    must('a delete receives 204 or 507', [204, refused].includes(await clients.remove(instance())))
    // Lists all items and reads their bytes.
    await ledger.check(instance())
    await disk.free()
    await clients.resumeAll(instance())
    for (const way of [...ways, clients.remove])
      must('uploads succeed once there is room', [200, 201, 204].includes(await way(instance())))
  }

/** Each round uses its own disk, since stored items take up room. */
const onSmallDisks = (
  title: string,
  megabytes: number,
  /** Returns the data directory; `elsewhere` is on a disk with room. */
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
