import { existsSync, lstatSync } from 'node:fs'
import { mkdir, readdir, rename, rm } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { Type } from 'typebox'
import { Value } from 'typebox/value'
import { errorCode } from '../core/faults.ts'
import type { BlobStore } from '../storage/blobs/blobs.ts'
import type { CopyableInspection, InspectedItem } from '../storage/catalog/checks/inspection.ts'
import { createDirectories, createFile, readJson, replaceFile, syncPath } from '../storage/durable-files.ts'
import { FaultyItems, readBackup } from './backup.ts'
import { type CopyResult, copyBlobs, hashFile } from './copies.ts'
import { BackupError, restoreRecord } from './interrupted-restore.ts'

/**
 * Restores a finished backup into an empty data directory, and holds the lock of the directory until it ends. Until it has finished, no
 * service starts on the directory (docs/interface.md F8). Restoring the same backup again completes an interrupted restore.
 * Verifies the hash of every item; items whose bytes are missing or wrong in the backup are restored without bytes and marked
 * as damaged. Throws BackupError.
 */
export async function restore(parts: {
  /** The directory of the backup. */
  readonly from: string
  /** As readBackup. */
  readonly at: string | null
  /** The data directory. */
  readonly data: string
  readonly lock: () => { release(): void }
  /** Copies the catalog of the backup into a directory. */
  readonly copyRows: (rows: string, directory: string) => Promise<void>
  readonly openInspection: (directory: string) => Promise<CopyableInspection>
  readonly openBlobs: (directory: string) => Promise<BlobStore>
  readonly onItem: (done: number, of: number) => void
}): Promise<CopyResult> {
  const { from, at, data } = parts
  const backup = await readBackup(from, at)
  const rows = join(from, backup.snapshot, 'catalog.db')
  if ((await hashFile(rows)) !== backup.sha256)
    throw new BackupError(`${rows} is not what the backup wrote: it is damaged. Use another backup.`)
  await markDirectory(data)
  const lock = parts.lock()
  try {
    return (await beginRestore(data, backup.sha256)) ?? (await restoreRows(parts, rows, backup))
  } finally {
    lock.release()
  }
}

async function restoreRows(
  parts: Parameters<typeof restore>[0],
  rows: string,
  backup: { readonly sha256: string; readonly items: number },
): Promise<CopyResult> {
  const { data } = parts
  const stage = stagingDirectory(data)
  const catalog = join(stage, 'catalog.db')
  for (const suffix of ['', '-wal', '-shm', '-journal']) await rm(`${catalog}${suffix}`, { force: true })
  await parts.copyRows(rows, stage)
  const result = await fill(parts, stage, backup.items)
  syncPath(catalog)
  syncPath(stage)
  await endRestore(data, backup.sha256, result, async () => {
    // The rows last: without catalog.db the directory holds no data.
    await rename(join(stage, 'blobs'), join(data, 'blobs'))
    syncPath(data)
    await rename(catalog, join(data, 'catalog.db'))
    syncPath(data)
  })
  return result
}

async function fill(
  { from, openInspection, openBlobs, onItem }: Parameters<typeof restore>[0],
  stage: string,
  items: number,
): Promise<CopyResult> {
  const inspection = await openInspection(stage)
  try {
    const {
      details: [damage],
    } = await inspection.damage()
    if (damage !== undefined) throw new BackupError(`The rows of the backup are damaged: ${damage}`)
    await inspection.renew()
    const to = await openBlobs(stage)
    // Removes the temporary files of an interrupted restore.
    await to.recovery?.removeTemporary()
    let done = 0
    const marked: InspectedItem[] = []
    const result = await copyBlobs({
      inspection,
      from: await openBlobs(from),
      to,
      onItem(item) {
        if (item.damaged) marked.push(item)
        onItem(++done, items)
      },
    })
    // All bytes in the stage were verified when they were copied, now or by an interrupted restore.
    const faulty = new Set(result.faulty.map(({ id }) => id))
    await inspection.unmarkDamaged(marked.map(({ id }) => id).filter((id) => !faulty.has(id)))
    await inspection.markDamaged([...faulty])
    return result
  } finally {
    await inspection.close()
  }
}

/** A restore copies everything here before it moves it into the data directory. */
const stagingDirectory = (data: string): string => join(data, 'restoring')

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
  syncPath(data)
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
  replaceFile(restoreRecord(data), JSON.stringify({ backup, result: null }))
  await mkdir(stage, { recursive: true, mode: 0o700 })
  syncPath(data)
  return null
}

/** Calls `move`, which moves everything into the data directory, and removes the stage. */
async function endRestore(
  data: string,
  backup: string,
  result: CopyResult,
  move: () => Promise<void>,
): Promise<void> {
  replaceFile(restoreRecord(data), JSON.stringify({ backup, result }))
  await move()
  await clearStage(data)
}

/** The record last: while it exists, another restore completes this one. */
async function clearStage(data: string): Promise<void> {
  await rm(stagingDirectory(data), { recursive: true, force: true })
  await rm(restoreRecord(data), { force: true })
  syncPath(data)
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
