import { existsSync, lstatSync } from 'node:fs'
import { mkdir, readdir, rename, rm } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { Type } from 'typebox'
import { Value } from 'typebox/value'
import { errorCode } from '../core/error-code.ts'
import { createDirectories } from '../files/create-directories.ts'
import { createFile, readJson, replaceFile, syncPath } from '../files/durable-files.ts'
import { BackupError } from './backup-error.ts'
import type { CopyResult } from './copy-blobs.ts'
import { FaultyItems } from './faulty-items.ts'
import { restoreRecord } from './require-no-restore.ts'

/** A restore copies everything here before it moves it into the data directory. */
export const stagingDirectory = (data: string): string => join(data, 'restoring')

/** Entries that an empty data directory may contain. */
const ignored: ReadonlySet<string> = new Set([
  'restoring',
  'restoring.json',
  'restoring.json.new',
  'lock.db',
  'lock.db-journal',
  'hold.db',
  'hold.db-journal',
  'lost+found',
])
const ignoredIfEmpty: ReadonlySet<string> = new Set(['blobs', 'tmp', 'uploads', 'variants'])

const Result = Type.Object({
  items: Type.Integer(),
  copied: Type.Integer(),
  bytes: Type.Integer(),
  present: Type.Integer(),
  inCatalog: Type.Integer(),
  faulty: FaultyItems,
})

/** `restoring.json`: empty at first, then the hash of the backup's rows, and the result once everything is copied. */
const RestoreRecord = Type.Object({ backup: Type.String(), result: Type.Union([Result, Type.Null()]) })

/**
 * Creates an empty `restoring.json` before anything else, the lock included: from then on no service starts on the directory
 * (docs/interface.md F8). Leaves a directory with a catalog unchanged. Throws BackupError if the directory holds other data.
 */
export async function markDirectory(data: string): Promise<void> {
  createDirectories(resolve(data))
  if (existsSync(restoreRecord(data)) || existsSync(join(data, 'catalog.db'))) return
  await requireEmpty(data, false)
  try {
    await using file = await createFile(restoreRecord(data))
    await file.sync()
  } catch (error) {
    // Another restore may have created it since the check. A link without a target is replaced by the next record.
    if (errorCode(error) !== 'EEXIST') throw error
  }
  await syncPath(data)
}

/**
 * Prepares the stage for a restore of this backup; reuses what an interrupted restore of the same backup has copied.
 * Returns the result if that restore was interrupted after its last step: it is complete then. Throws BackupError if the
 * directory holds data.
 */
export async function beginRestore(data: string, backup: string): Promise<CopyResult | null> {
  const stage = stagingDirectory(data)
  const record = await readRecord(data)
  if (record?.result && record.backup === backup && existsSync(join(data, 'catalog.db'))) {
    await clearStage(data)
    return record.result
  }
  await requireEmpty(data, record !== null)
  // A link: the data would be written to its target.
  if (lstatSync(stage, { throwIfNoEntry: false })?.isSymbolicLink()) await rm(stage)
  // The interrupted restore had moved the bytes and not the rows.
  if (record !== null && !existsSync(join(stage, 'blobs')) && existsSync(join(data, 'blobs')))
    await rename(join(data, 'blobs'), join(stage, 'blobs'))
  if (record?.backup !== backup) await rm(stage, { recursive: true, force: true })
  await replaceFile(restoreRecord(data), JSON.stringify({ backup, result: null }))
  await mkdir(stage, { recursive: true, mode: 0o700 })
  await syncPath(data)
  return null
}

/** Calls `move`, which moves everything into the data directory, and removes the stage. */
export async function endRestore(
  data: string,
  backup: string,
  result: CopyResult,
  move: () => Promise<void>,
): Promise<void> {
  await replaceFile(restoreRecord(data), JSON.stringify({ backup, result }))
  await move()
  await clearStage(data)
}

/** The record last: while it exists, another restore completes this one. */
async function clearStage(data: string): Promise<void> {
  await rm(stagingDirectory(data), { recursive: true, force: true })
  await rm(restoreRecord(data), { force: true })
  await syncPath(data)
}

async function readRecord(data: string) {
  const record = await readJson(restoreRecord(data))
  return Value.Check(RestoreRecord, record) ? record : null
}

async function requireEmpty(data: string, isInterrupted: boolean): Promise<void> {
  for (const name of await readdir(data)) {
    if (ignored.has(name) || (isInterrupted && name === 'blobs')) continue
    if (ignoredIfEmpty.has(name) && (await readdir(join(data, name))).length === 0) continue
    throw new BackupError(
      `${data} holds data already (${name}); nothing was changed. Move it away, or set MEDIABUCKET_DATA to another directory.`,
    )
  }
}
