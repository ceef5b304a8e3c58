import { existsSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { auditActions } from '../../packages/server/src/storage/catalog/audit/audit-events.ts'
import { databaseSettings } from '../harness/database.ts'
import { rowsOf } from '../harness/postgres.ts'
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

/**
 * Without a request in progress, these directories are empty and no intent remains. With an S3 store there are none of these directories, and intents
 * remain for an hour, because another service may continue the upload.
 */
export async function checkCleared(
  directory: string,
  places: readonly string[],
  ledger: Ledger,
): Promise<void> {
  const { MEDIABUCKET_BLOBS_URL: store } = await databaseSettings(directory)
  const present = store === undefined ? places : places.filter((place) => existsSync(join(directory, place)))
  for (const place of present)
    for (const name of await readdir(join(directory, place)))
      ledger.fault('halfVisible', `${place}/${name} remains`)
  if (store !== undefined) return
  for (const id of await intentsIn(directory)) ledger.fault('halfVisible', `the intent of ${id} remains`)
}

/** The rows of a statement in the catalog of a data directory. */
export async function rowsIn(directory: string, statement: string): Promise<Record<string, unknown>[]> {
  const { MEDIABUCKET_DATABASE_URL: url } = await databaseSettings(directory)
  if (url !== undefined) return rowsOf(url, statement)
  using db = new DatabaseSync(join(directory, 'catalog.db'), { readOnly: true })
  return db.prepare(statement).all()
}

export const intentsIn = async (directory: string): Promise<string[]> =>
  (await rowsIn(directory, 'SELECT id FROM intents')).map(({ id }) => String(id))

/** After the last check of the ledger: the audit log has exactly one event for each item of the first bucket that was stored, and each that was deleted. */
export async function checkAuditLog(directory: string, ledger: Ledger): Promise<void> {
  const { stored, deleted } = ledger.changes()
  for (const [action, ids] of [
    [auditActions.upload, stored],
    [auditActions.delete, deleted],
  ] as const) {
    const expected = new Set(ids)
    for (const id of await recordedItems(directory, action))
      if (!expected.delete(id))
        ledger.fault('halfVisible', `action ${action} of ${id} has no change, or two events`)
    for (const id of expected) ledger.fault('lost', `action ${action} of ${id} has no event`)
  }
}

/** The items of all events of this action in a bucket. */
export const recordedItems = async (
  directory: string,
  action: number,
  bucket = 'default',
): Promise<string[]> =>
  (
    await rowsIn(
      directory,
      `SELECT target FROM audit_events WHERE action = ${action}
    AND bucket_id = (SELECT id FROM buckets WHERE name = '${bucket}')`,
    )
  ).map(({ target }) => String(target))
