import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { fsck } from '../harness/upkeep.ts'
import type { Ledger } from './ledger.ts'

/** After a start and a stop, fsck --verify-bytes finds nothing, and no file of an interrupted upload remains. */
export async function checkLeftovers(directory: string, ledger: Ledger): Promise<void> {
  const { code, found } = await fsck(directory, '--verify-bytes')
  for (const [what, [count]] of Object.entries(found))
    ledger.fault('halfVisible', `fsck finds ${count} × ${what}`)
  if (code !== 0) ledger.fault('halfVisible', `fsck exits with ${code}`)
  for (const place of ['tmp', 'uploads', 'pending'])
    for (const name of await readdir(join(directory, place)))
      ledger.fault('halfVisible', `${place}/${name} remains`)
}
