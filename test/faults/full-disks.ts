import type { Ledger } from './ledger.ts'
import { type DiskRound, onSmallDisks } from './small-disks.ts'
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

const fullDiskOfStage =
  (title: string) =>
  async ({ disk, directory }: DiskRound): Promise<Pick<Ledger, 'tally' | 'faults'>> => {
    const verdict = await faultOnStage(title, fullDisk(disk), { directory }).run(1, () => {})
    return { tally: verdict, faults: verdict.faults }
  }

const blobsFull = 'the disk of the blobs is full, then not'
export const fullBlobDisk = onSmallDisks(
  { title: blobsFull, megabytes: 4, full: 'blobs' },
  fullDiskOfStage(blobsFull),
)

const catalogFull = 'the disk of the catalog is full, then not'
export const fullCatalogDisk = onSmallDisks(
  { title: catalogFull, megabytes: 2, full: 'catalog' },
  fullDiskOfStage(catalogFull),
)
