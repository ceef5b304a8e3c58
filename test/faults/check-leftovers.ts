import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { auditActions } from '../../packages/server/src/storage/catalog/audit-events.ts'
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

/** After the last check of the ledger: the audit log has exactly one event for each item that was stored, and each that was deleted. */
export function checkAuditLog(directory: string, ledger: Ledger): void {
  const { stored, deleted } = ledger.changes()
  for (const [action, ids] of [
    [auditActions.upload, stored],
    [auditActions.delete, deleted],
  ] as const) {
    const expected = new Set(ids)
    for (const id of recordedItems(directory, action))
      if (!expected.delete(id))
        ledger.fault('halfVisible', `action ${action} of ${id} has no change, or two events`)
    for (const id of expected) ledger.fault('lost', `action ${action} of ${id} has no event`)
  }
}

function recordedItems(directory: string, action: number): string[] {
  const db = new DatabaseSync(join(directory, 'catalog.db'), { readOnly: true })
  try {
    return db
      .prepare('SELECT target FROM audit_events WHERE action = ?')
      .all(action)
      .map((row) => String(row['target']))
  } finally {
    db.close()
  }
}
