import { fsck } from '../harness/upkeep.ts'
import type { Ledger } from './ledger.ts'

/**
 * After a crash bytes may stand that no item names: those of an upload that was renamed and not committed. Nothing else
 * may be found by a check of every byte, and nothing at all after its repair.
 */
export async function checkLeftovers(directory: string, ledger: Ledger): Promise<void> {
  const { found } = await fsck(directory, '--verify-bytes', '--repair')
  for (const [code, [count]] of Object.entries(found))
    if (code !== 'bytes-orphaned') ledger.fault('halfVisible', `fsck finds ${count} × ${code}`)
}
