import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdir, readdir, realpath, rm, stat } from 'node:fs/promises'
import { basename, dirname, isAbsolute, join, relative, resolve, sep } from 'node:path'
import { Type } from 'typebox'
import { Value } from 'typebox/value'
import { errorCode } from '../core/faults.ts'
import type { ItemId } from '../core/ids.ts'
import type { BlobInspection, BlobStore } from '../storage/blobs/blobs.ts'
import type { CopyableInspection, MissingRows } from '../storage/catalog/checks/inspection.ts'
import {
  CreateDirectoryError,
  createDirectories,
  readJson,
  replaceFile,
  syncPath,
} from '../storage/durable-files.ts'
import { type CopyFault, type CopyResult, copyBlobs, copyFaults, hashFile } from './copies.ts'
import { openBlobList, removeUnneeded } from './generations.ts'
import { BackupError } from './interrupted-restore.ts'

/** As stored in `backup.json` and `restoring.json`. */
export const FaultyItems = Type.Array(
  Type.Object({
    id: Type.Unsafe<ItemId>(Type.String()),
    what: Type.Unsafe<CopyFault>(Type.Enum(Object.keys(copyFaults))),
  }),
)

/**
 * Copies a snapshot of the rows, then the bytes that they name, into an open backup directory (docs/interface.md F6, F7).
 * The caller must hold the backup hold during the call, so that no bytes of the snapshot are deleted. With `keep`, this and later backups
 * keep so many generations, and remove the bytes that none of them needs.
 */
export async function backUp(parts: {
  /** Writes the rows as of one moment into a directory. */
  readonly snapshot: CopyableInspection['snapshot']
  readonly blobs: Pick<BlobStore, 'open'>
  readonly directory: string
  readonly openInspection: (directory: string) => Promise<CopyableInspection>
  readonly openBlobs: (directory: string) => Promise<BlobStore>
  readonly openBlobInspection: (directory: string) => Promise<Pick<BlobInspection, 'entries'>>
  /** The identity of the data; null if it could not be stored. */
  readonly identity: string | null
  readonly keep: number | null
  readonly onItem: (done: number, of: number) => void
}): Promise<BackupResult> {
  const { blobs, directory, onItem } = parts
  const target = await parts.openBlobs(directory)
  // Removes the temporary files of a killed backup.
  await target.recovery?.removeTemporary()
  const snapshot = await newSnapshot(directory)
  const path = join(directory, snapshot)
  const missing = await parts.snapshot(path, await earlierSnapshot(directory))
  const lost = missing.items.map((id) => ({ id, what: 'lost' as const }))
  const list = openBlobList(directory, snapshot)
  const rows = await parts.openInspection(path)
  let result: CopyResult
  try {
    const { items } = await rows.count()
    let done = 0
    const copied = await copyBlobs({
      inspection: rows,
      from: blobs,
      to: target,
      onItem({ id, contentId }) {
        if (contentId === null) list.add(id)
        onItem(++done, items)
      },
    })
    result = { ...copied, faulty: [...lost, ...copied.faulty] }
  } finally {
    await rows.close()
  }
  const { generations, keep } = await finishBackup(
    directory,
    { snapshot, blobs: await list.finish(), items: result.items, faulty: [...result.faulty] },
    parts,
  )
  const removal =
    keep === null
      ? undefined
      : await removeUnneeded({
          ...{ directory, generations, blobs: target },
          inspection: await parts.openBlobInspection(directory),
        })
  return {
    ...result,
    hasLostEvents: missing.hasLostEvents,
    generations: generations.length,
    ...(removal !== undefined && { removal }),
  }
}

export interface BackupResult extends CopyResult, Pick<MissingRows, 'hasLostEvents'> {
  /** How many the directory has. */
  readonly generations: number
  /** The bytes that no generation needs; null if none were removed, because a list is damaged; left out without `keep`. */
  readonly removal?: Awaited<ReturnType<typeof removeUnneeded>>
}

const marker = 'backup.json'
const format = 1
const snapshotName = /^snapshot-[0-9a-f]{16}$/

const FinishedBackup = Type.Object({
  /** The subdirectory with the rows. */
  snapshot: Type.String({ pattern: snapshotName.source }),
  /** The hash of the rows, in hexadecimal. */
  sha256: Type.String(),
  items: Type.Integer(),
  finishedAt: Type.String(),
  /** Items whose bytes are not in the backup. */
  faulty: FaultyItems,
  /** The hash of the list of the bytes that it needs (generations.ts). */
  blobs: Type.Optional(Type.String()),
})

/** A complete backup: a generation of the directory. */
export type FinishedBackup = Type.Static<typeof FinishedBackup>

const Marker = Type.Object({
  format: Type.Literal(format),
  /** The last one. */
  finished: Type.Union([FinishedBackup, Type.Null()]),
  /** The generations before it, the latest first. */
  earlier: Type.Optional(Type.Array(FinishedBackup)),
  /** How many generations are kept. Left out: one, and bytes that it does not need stay. */
  keep: Type.Optional(Type.Integer({ minimum: 1 })),
  /** The identity of the data. Backups of development versions have none. */
  data: Type.Optional(Type.String()),
})

type Marker = Type.Static<typeof Marker>

/**
 * Creates or opens a backup directory and returns its real path. Throws BackupError if the directory holds anything else,
 * backups of data with another identity, or if it contains the data directory or is inside it. `backup.json` names the last complete backup; it is
 * replaced atomically.
 */
export async function openBackupDirectory(
  path: string,
  data: string,
  identity: string | null,
): Promise<string> {
  const { existing, missing } = await resolvePath(path)
  if (!(await stat(existing)).isDirectory())
    throw new BackupError(`${existing} is a file, not a directory; choose a directory.`)
  const directory = join(existing, ...missing)
  // With a database and an S3 store, there may be no data directory.
  const source = existsSync(data) ? await realpath(data) : resolve(data)
  if (isWithin(directory, source))
    throw new BackupError(
      `${path} is ${directory === source ? 'the data directory itself' : `inside the data directory ${data}`}. A backup must survive the loss of that directory. Choose another directory, preferably on another disk.`,
    )
  if (isWithin(source, directory))
    throw new BackupError(`${path} holds the data directory ${data}; choose a directory elsewhere.`)
  try {
    createDirectories(directory)
  } catch (error) {
    if (!(error instanceof CreateDirectoryError)) throw error
    throw new BackupError(
      `The directory ${error.path} cannot be created (${error.code}); choose another one.`,
    )
  }
  const names = await readdir(directory)
  if (!names.includes(marker)) {
    // A backup that was interrupted at its start leaves only `backup.json.new`.
    if (names.some((name) => !['lost+found', `${marker}.new`].includes(name)))
      throw new BackupError(`${path} is not empty and holds no backup; choose another directory.`)
    replaceFile(join(directory, marker), `${JSON.stringify({ format, finished: null })}\n`)
  }
  const { finished, data: found = identity } = await readMarker(directory)
  if (finished !== null && identity !== null && found !== identity)
    throw new BackupError(
      `${path} has backups of the data ${found}, and those of ${data} are the data ${identity}. Choose another directory for their backups.`,
    )
  return directory
}

/**
 * The real path of the deepest existing ancestor, and the missing names below it. The path is not normalized first:
 * `link/..` is the parent of the link's target.
 */
async function resolvePath(path: string): Promise<{ existing: string; missing: string[] }> {
  const missing: string[] = []
  for (let at = path; ; at = dirname(at)) {
    try {
      return { existing: await realpath(at), missing }
    } catch (error) {
      if (!['ENOENT', 'ENOTDIR'].includes(errorCode(error) ?? ''))
        throw new BackupError(`${path} cannot be used (${errorCode(error)}); choose another directory.`)
      missing.unshift(basename(at))
    }
  }
}

const isWithin = (path: string, directory: string): boolean => {
  const route = relative(directory, path)
  return route === '' || !(route === '..' || route.startsWith(`..${sep}`) || isAbsolute(route))
}

/** The generations, the latest first. Throws BackupError if there is no complete backup. */
export async function readGenerations(
  path: string,
): Promise<readonly [FinishedBackup, ...(readonly FinishedBackup[])]> {
  const { finished, earlier = [] } = await readMarker(path)
  if (finished === null)
    throw new BackupError(`The backup in ${path} was interrupted and never finished; run it again.`)
  return [finished, ...earlier]
}

/** The last complete backup, or the one that was finished at a time of which `at` is the beginning. Throws BackupError. */
export async function readBackup(path: string, at: string | null = null): Promise<FinishedBackup> {
  const generations = await readGenerations(path)
  if (at === null) return generations[0]
  const [found, ...others] = generations.filter(({ finishedAt }) => finishedAt.startsWith(at))
  if (found !== undefined && others.length === 0) return found
  const times = generations.map(({ finishedAt }) => `\n  ${finishedAt}`).join('')
  throw new BackupError(
    `${path} has ${found === undefined ? 'no backup' : 'several backups'} of ${at}. It has those of:${times}`,
  )
}

/** The directory with the rows of the last complete backup; null if there is none. */
async function earlierSnapshot(directory: string): Promise<string | null> {
  const { finished } = await readMarker(directory)
  return finished && join(directory, finished.snapshot)
}

async function newSnapshot(directory: string): Promise<string> {
  const snapshot = `snapshot-${randomBytes(8).toString('hex')}`
  await mkdir(join(directory, snapshot), { mode: 0o700 })
  return snapshot
}

/**
 * Syncs the snapshot, replaces `backup.json`, and removes the snapshots that it does not name. The blobs must be synced already. Returns the
 * generations that remain, and how many are kept.
 */
async function finishBackup(
  directory: string,
  backup: Pick<FinishedBackup, 'snapshot' | 'blobs' | 'items' | 'faulty'>,
  wanted: { readonly identity: string | null; readonly keep: number | null },
): Promise<{ readonly generations: readonly FinishedBackup[]; readonly keep: number | null }> {
  const rows = join(directory, backup.snapshot, 'catalog.db')
  syncPath(rows)
  syncPath(join(directory, backup.snapshot))
  syncPath(directory)
  const finished = { ...backup, sha256: await hashFile(rows), finishedAt: new Date().toISOString() }
  const before = await readMarker(directory)
  const keep = wanted.keep ?? before.keep ?? null
  const data = wanted.identity ?? before.data
  const all = [...(before.finished === null ? [] : [before.finished]), ...(before.earlier ?? [])]
  const earlier = all.slice(0, (keep ?? 1) - 1)
  const next: Marker = {
    format,
    finished,
    earlier,
    ...(keep !== null && { keep }),
    ...(data !== undefined && { data }),
  }
  replaceFile(join(directory, marker), `${JSON.stringify(next, null, 2)}\n`)
  const generations = [finished, ...earlier]
  const named = new Set(generations.map(({ snapshot }) => snapshot))
  for (const name of await readdir(directory))
    if (snapshotName.test(name) && !named.has(name))
      await rm(join(directory, name), { recursive: true, force: true })
  return { generations, keep }
}

async function readMarker(directory: string): Promise<Marker> {
  const path = join(directory, marker)
  if (!existsSync(path)) throw new BackupError(`${directory} holds no backup: there is no ${marker}.`)
  const content = await readJson(path)
  if (!Value.Check(Marker, content))
    throw new BackupError(`${path} is damaged, or another version of mediabucket wrote it.`)
  return content
}
