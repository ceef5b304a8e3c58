import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdir, readdir, realpath, rm, stat } from 'node:fs/promises'
import { basename, dirname, isAbsolute, join, relative, sep } from 'node:path'
import { Type } from 'typebox'
import { Value } from 'typebox/value'
import { errorCode } from '../core/error-code.ts'
import { CreateDirectoryError, createDirectories } from '../files/create-directories.ts'
import { readJson, replaceFile, syncPath } from '../files/durable-files.ts'
import { FaultyItems } from './faulty-items.ts'
import { hashFile } from './hashes.ts'

/** What cannot be backed up to, or restored from or to, and why; the message says what to do. */
export class BackupError extends Error {
  override readonly name = 'BackupError'
}

const marker = 'backup.json'
const format = 1
const snapshotName = /^snapshot-[0-9a-f]{16}$/

const FinishedBackup = Type.Object({
  /** The directory within the backup's that holds the rows. */
  snapshot: Type.String({ pattern: snapshotName.source }),
  /** Of the rows, in hexadecimal. */
  sha256: Type.String(),
  items: Type.Integer(),
  finishedAt: Type.String(),
  /** Items whose bytes are not in the backup; absent in backups of earlier versions. */
  faulty: Type.Optional(FaultyItems),
})

/** The last backup that came to its end. */
type FinishedBackup = Type.Static<typeof FinishedBackup>

const Marker = Type.Object({
  format: Type.Literal(format),
  finished: Type.Union([FinishedBackup, Type.Null()]),
})

/**
 * Makes the directory one of backups, or takes it as it is; refuses one that holds anything else, and one that shares
 * its place with the data. `backup.json` names the last finished backup, and is replaced in one step when another one
 * is whole.
 */
export async function openBackupDirectory(path: string, data: string): Promise<string> {
  const { standing, missing } = await placeOf(path)
  if (!(await stat(standing)).isDirectory())
    throw new BackupError(`${standing} is a file, not a directory; choose a directory.`)
  const directory = join(standing, ...missing)
  const source = await realpath(data)
  if (isWithin(directory, source))
    throw new BackupError(
      `${path} is ${directory === source ? 'the data directory itself' : `inside the data directory ${data}`}, which is what a backup is for; choose a directory elsewhere, best on another disk.`,
    )
  if (isWithin(source, directory))
    throw new BackupError(`${path} holds the data directory ${data}; choose a directory elsewhere.`)
  try {
    createDirectories(directory)
  } catch (error) {
    if (!(error instanceof CreateDirectoryError)) throw error
    throw new BackupError(`The directory ${error.path} cannot be made (${error.code}); choose another one.`)
  }
  const names = await readdir(directory)
  if (!names.includes(marker)) {
    // A backup that was interrupted at its very beginning leaves the new marker alone.
    if (names.some((name) => !['lost+found', `${marker}.new`].includes(name)))
      throw new BackupError(`${path} is not empty and holds no backup; choose another directory.`)
    await replaceFile(join(directory, marker), `${JSON.stringify({ format, finished: null })}\n`)
  }
  await readMarker(directory)
  return directory
}

/**
 * The true path of what stands there, or of the closest directory above it, and the names below that are missing.
 * Never made simpler before: `link/..` is what is above the link's target.
 */
async function placeOf(path: string): Promise<{ standing: string; missing: string[] }> {
  const missing: string[] = []
  for (let at = path; ; at = dirname(at)) {
    try {
      return { standing: await realpath(at), missing }
    } catch (error) {
      if (!['ENOENT', 'ENOTDIR'].includes(errorCode(error) ?? ''))
        throw new BackupError(`${path} cannot be used (${errorCode(error)}); choose another directory.`)
      missing.unshift(basename(at))
    }
  }
}

const isWithin = (path: string, directory: string): boolean => {
  const way = relative(directory, path)
  return way === '' || !(way === '..' || way.startsWith(`..${sep}`) || isAbsolute(way))
}

/** Throws BackupError where no backup has come to its end. */
export async function readBackup(path: string): Promise<FinishedBackup> {
  const finished = await readMarker(path)
  if (finished === null)
    throw new BackupError(`The backup in ${path} was interrupted and never finished; run it again.`)
  return finished
}

export async function newSnapshot(directory: string): Promise<string> {
  const snapshot = `snapshot-${randomBytes(8).toString('hex')}`
  await mkdir(join(directory, snapshot), { mode: 0o700 })
  return snapshot
}

/** Everything it names must be synced already, but for the snapshot. Then what earlier backups left of rows goes. */
export async function finishBackup(
  directory: string,
  backup: Pick<FinishedBackup, 'snapshot' | 'items' | 'faulty'>,
): Promise<void> {
  const rows = join(directory, backup.snapshot, 'catalog.db')
  await syncPath(rows)
  await syncPath(join(directory, backup.snapshot))
  await syncPath(directory)
  const finished = { ...backup, sha256: await hashFile(rows), finishedAt: new Date().toISOString() }
  await replaceFile(join(directory, marker), `${JSON.stringify({ format, finished }, null, 2)}\n`)
  for (const name of await readdir(directory))
    if (snapshotName.test(name) && name !== backup.snapshot)
      await rm(join(directory, name), { recursive: true, force: true })
}

async function readMarker(directory: string): Promise<FinishedBackup | null> {
  const path = join(directory, marker)
  if (!existsSync(path)) throw new BackupError(`${directory} holds no backup: there is no ${marker}.`)
  const stated = await readJson(path)
  if (!Value.Check(Marker, stated))
    throw new BackupError(`${path} is damaged, or of another version of mediabucket.`)
  return stated.finished
}
