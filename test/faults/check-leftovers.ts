import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { fsck } from '../harness/upkeep.ts'
import type { Ledger } from './ledger.ts'

/** After a start and a stop, fsck --verify-bytes finds nothing, and no file of an interrupted upload remains. */
export async function checkLeftovers(directory: string, ledger: Ledger): Promise<void> {
  const { code, found } = await fsck(directory, '--verify-bytes')
  for (const [what, [count]] of Object.entries(found))
    ledger.fault('halfVisible', `fsck finds ${count} × ${what}`)
  if (code !== 0) ledger.fault('halfVisible', `fsck exits with ${code}`)
  await checkCleared(directory, ['tmp', 'uploads'], ledger)
}

/** Without a request in progress, these directories are empty and no intent remains. */
export async function checkCleared(
  directory: string,
  places: readonly string[],
  ledger: Ledger,
): Promise<void> {
  for (const place of places)
    for (const name of await readdir(join(directory, place)))
      ledger.fault('halfVisible', `${place}/${name} remains`)
  for (const id of intentsIn(directory)) ledger.fault('halfVisible', `the intent of ${id} remains`)
}

export function intentsIn(directory: string): string[] {
  const db = new DatabaseSync(join(directory, 'catalog.db'), { readOnly: true })
  try {
    return db
      .prepare('SELECT id FROM intents')
      .all()
      .map(({ id }) => String(id))
  } finally {
    db.close()
  }
}
