import { symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { temporaryDirectory } from '../harness/directory.ts'
import { smallDisk } from '../harness/small-disk.ts'
import { type Fault, verdictOf } from './fault.ts'
import type { Ledger } from './ledger.ts'

export type SmallDisk = Awaited<ReturnType<typeof smallDisk>>

/** A round with a disk of its own, since what is stored takes up room. */
export interface DiskRound {
  readonly disk: SmallDisk
  /** The data directory: what is not on the disk is on one with room. */
  readonly directory: string
  /** From 0. */
  readonly round: number
}

/** A fault of a small disk with the blobs or the catalog. */
export const onSmallDisks = (
  {
    title,
    megabytes,
    full,
  }: { readonly title: string; readonly megabytes: number; readonly full: 'blobs' | 'catalog' },
  run: (round: DiskRound) => Promise<Pick<Ledger, 'tally' | 'faults'>>,
): Fault => ({
  title,
  async run(rounds, onRound) {
    const ledgers: Pick<Ledger, 'tally' | 'faults'>[] = []
    for (let round = 0; round < rounds; round += 1) {
      await using disk = await smallDisk(megabytes)
      await using elsewhere = await temporaryDirectory()
      const [directory, catalog] =
        full === 'blobs' ? [disk.path, elsewhere.path] : [elsewhere.path, disk.path]
      await symlink(join(catalog, 'catalog.db'), join(directory, 'catalog.db'))
      ledgers.push(await run({ disk, directory, round }))
      onRound()
    }
    return verdictOf(...ledgers)
  },
})
