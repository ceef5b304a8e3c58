import { existsSync } from 'node:fs'
import { mkdir, readdir, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { Type } from 'typebox'
import { Value } from 'typebox/value'
import { readJson, replaceFile, syncPath } from '../files/durable-files.ts'
import { BackupError } from './backup-directory.ts'
import type { Copied } from './copy-blobs.ts'
import { FaultyItems } from './faulty-items.ts'

/** Where a restore gathers everything before it puts it in place. */
export const stageOf = (data: string): string => join(data, 'restoring')
const recordOf = (data: string): string => join(data, 'restoring.json')

/** What may be in the data directory before: nothing that anybody could miss. */
const harmless: ReadonlySet<string> = new Set([
  'restoring',
  'restoring.json',
  'restoring.json.new',
  'lock.db',
  'lock.db-journal',
  'hold.db',
  'hold.db-journal',
  'lost+found',
])
const harmlessWhenEmpty: ReadonlySet<string> = new Set(['blobs', 'tmp', 'uploads', 'variants', 'pending'])

const Result = Type.Object({
  items: Type.Integer(),
  copied: Type.Integer(),
  bytes: Type.Integer(),
  present: Type.Integer(),
  faulty: FaultyItems,
})

/** What a restore writes down of itself: the backup, by the hash of its rows, and what came of it once all is copied. */
const RestoreRecord = Type.Object({ backup: Type.String(), result: Type.Union([Result, Type.Null()]) })

/**
 * Makes the stage ready for a restore of this backup: a new one, or that of an interrupted restore with what it has
 * copied. Returns the result of a restore that was interrupted after its last step, which is complete with this call.
 * Throws BackupError where the directory holds data.
 */
export async function beginRestore(data: string, backup: string): Promise<Copied | null> {
  const stage = stageOf(data)
  const record = await readRecord(data)
  if (record?.result && record.backup === backup && existsSync(join(data, 'catalog.db'))) {
    await clearStage(data)
    return record.result
  }
  await requireEmpty(data, record !== null)
  // The interrupted restore had put the bytes in place, and not the rows.
  if (record !== null && !existsSync(join(stage, 'blobs')) && existsSync(join(data, 'blobs')))
    await rename(join(data, 'blobs'), join(stage, 'blobs'))
  if (record?.backup !== backup) await rm(stage, { recursive: true, force: true })
  await replaceFile(recordOf(data), JSON.stringify({ backup, result: null }))
  await mkdir(stage, { recursive: true, mode: 0o700 })
  await syncPath(data)
  return null
}

/** Puts everything in place by `move`, and removes the stage. */
export async function endRestore(
  data: string,
  backup: string,
  result: Copied,
  move: () => Promise<void>,
): Promise<void> {
  await replaceFile(recordOf(data), JSON.stringify({ backup, result }))
  await move()
  await clearStage(data)
}

/** The record last: as long as it is there, another restore completes this one. */
async function clearStage(data: string): Promise<void> {
  await rm(stageOf(data), { recursive: true, force: true })
  await rm(recordOf(data), { force: true })
  await syncPath(data)
}

/** Throws BackupError where a restore was interrupted: a service that starts there would begin with nothing. */
export function requireNoRestore(data: string): void {
  if (existsSync(recordOf(data)) && !existsSync(join(data, 'catalog.db')))
    throw new BackupError(
      `A restore into ${data} was interrupted. Complete it with the same command, mediabucket restore DIR, or empty the directory.`,
    )
}

async function readRecord(data: string) {
  const record = await readJson(recordOf(data))
  return Value.Check(RestoreRecord, record) ? record : null
}

async function requireEmpty(data: string, isInterrupted: boolean): Promise<void> {
  for (const name of await readdir(data)) {
    if (harmless.has(name) || (isInterrupted && name === 'blobs')) continue
    if (harmlessWhenEmpty.has(name) && (await readdir(join(data, name))).length === 0) continue
    throw new BackupError(
      `${data} holds data already (${name}); nothing was changed. Move it away, or set MEDIABUCKET_DATA to another directory.`,
    )
  }
}
