import { lstat } from 'node:fs/promises'
import { relative, sep } from 'node:path'
import { cleanPath, longestPath } from '../../core/names.ts'
import { formatCount, formatSize } from '../terminal.ts'
import type { ClientContext } from './client-command.ts'
import { hashOfFile, isPart } from './downloads.ts'
import { findFiles, type LocalFault, type LocalFile } from './local-files.ts'
import { forEach, type PlannedFile } from './small-uploads.ts'
import { newestOfPaths, type SyncArguments, type SyncOutcome } from './sync-pass.ts'
import type { SyncRecords } from './sync-records.ts'
import { type Outcome, planFiles, sendFiles } from './upload.ts'
import type { StoredItem, UploadJournal, UploadStates } from './upload-state.ts'

/** Files that are read at a time, to compare their bytes. */
const readConcurrency = 4

/** The newest item of a path, and earlier ones. */
interface RemoteFile {
  readonly id: string
  readonly size: number
  readonly sha256: string
  readonly older: readonly string[]
}

interface UploadState {
  readonly records: SyncRecords
  readonly journal: UploadJournal
  readonly states: UploadStates
}

/**
 * Uploads the files of a directory whose bytes the bucket does not have at their paths, then deletes the items that they replace and, with
 * `deletes`, the items without a file. Each step can be repeated after a kill: a new item is stored before the earlier one is deleted, and
 * of two items with a path the newer one counts.
 */
export async function syncUp(
  args: SyncArguments,
  state: UploadState,
  context: ClientContext,
): Promise<SyncOutcome> {
  const { deletes, isDryRun, isExcluded } = args
  const { client, interrupted: signal, output, report } = context
  const { records, journal, states } = state
  const { files, faults } = await findLocal(args)
  const remote = await readRemote(args, context)

  const changed = new Set<string>()
  const toCompare: [path: string, file: LocalFile, there: RemoteFile][] = []
  for (const [path, file] of files) {
    const there = remote.get(path)
    if (there === undefined) changed.add(path)
    else if (!records.has(path, file.version, there.id)) toCompare.push([path, file, there])
  }
  await forEach(toCompare, readConcurrency, async ([path, file, there]) => {
    signal.throwIfAborted()
    // A file that cannot be read is reported by its upload.
    const isSame =
      file.size === there.size && (await hashOfFile(file.path).catch(() => null)) === there.sha256
    if (!isSame) return changed.add(path)
    // An item of this directory that was replaced, but not deleted, is found by its record.
    return there.older.length > 0 ? undefined : await records.set(path, file.version, there.id)
  })
  const paths = [...files.keys()].filter((path) => changed.has(path))
  const planned = paths.flatMap((path) => files.get(path) ?? [])
  const outdated = (path: string, { id, older }: RemoteFile) => {
    if (!files.has(path)) return deletes && faults.length === 0 && !isExcluded(path) ? [id, ...older] : []
    const known = records.itemOf(path)
    return older.filter((item) => deletes || item === known)
  }
  const leftovers = [...remote].flatMap(([path, there]) =>
    outdated(path, there).map((id): readonly [string, string] => [id, path]),
  )
  if (deletes && faults.length > 0)
    report('Nothing is deleted from the bucket, because not all files were found.')

  if (isDryRun) {
    await output.lines([
      ...paths.map((path) => [remote.has(path) ? 'replace' : 'upload', path]),
      ...leftovers.map(([, path]) => ['delete', path]),
    ])
    const sent = planned.map(({ size }) => size)
    const counts = { sent, replaced: 0, deleted: leftovers.length, failed: faults, vanished: 0, untried: 0 }
    return { ...counts, examined: files.size, unchanged: files.size - sent.length, end: null }
  }

  for (const path of paths) {
    const there = remote.get(path)
    if (there) await records.set(path, '', there.id)
  }
  await records.flush()
  const replacing: [file: PlannedFile, item: StoredItem, earlier: RemoteFile][] = []
  const print = async (item: StoredItem, file: PlannedFile) => {
    const path = pathOf(file)
    const there = remote.get(path)
    if (there) replacing.push([file, item, there])
    else await records.set(path, file.version, item.id)
    if (!output.closed.aborted) await output.lines([[there ? 'replace' : 'upload', path]]).catch(() => {})
  }
  const sending = { states, journal, expiresAt: null, print }
  const { stored, failed, untried, end } = await sendInParts(planned, sending, context)
  const replaced = replacing.map(([, { id }, earlier]) =>
    [earlier.id, ...earlier.older].filter((old) => old !== id),
  )
  let deleted = 0
  if (end === null) {
    const ids = [...replaced.flat(), ...leftovers.map(([id]) => id)]
    if (ids.length > 0) deleted = (await client.deleteMany(ids, { signal })).deleted.length
    for (const [file, { id }] of replacing) await records.set(pathOf(file), file.version, id)
    for (const [, path] of leftovers) {
      if (!files.has(path)) records.forget(path)
      if (!files.has(path) && !output.closed.aborted) await output.lines([['delete', path]]).catch(() => {})
    }
  }
  const vanished = await countVanished(failed, planned)
  return {
    examined: files.size,
    unchanged: files.size - planned.length,
    sent: stored,
    replaced: replacing.length,
    deleted: deleted - (end === null ? replaced.flat().length : 0),
    failed: [...faults, ...failed],
    vanished,
    untried,
    end,
  }
}

/** Files that are planned and sent together. A plan takes some hundred bytes for each file. */
const partSize = 5_000

/** As sendFiles, for any number of files. */
async function sendInParts(
  files: readonly LocalFile[],
  sending: Parameters<typeof sendFiles>[1],
  context: ClientContext,
): Promise<Pick<Outcome, 'stored' | 'failed' | 'untried' | 'end'>> {
  const stored: number[] = []
  const failed: LocalFault[] = []
  for (let start = 0; start < files.length; start += partSize) {
    const part = files.slice(start, start + partSize)
    const sent = await sendFiles(planFiles(part), sending, context)
    stored.push(...sent.stored)
    failed.push(...sent.failed)
    const untried = sent.untried + Math.max(0, files.length - start - partSize)
    if (sent.end !== null) return { stored, failed, untried, end: sent.end }
  }
  return { stored, failed, untried: 0, end: null }
}

/** The name of a planned file is `./` and its path in the bucket. */
const pathOf = ({ name }: LocalFile): string => name.slice(2)

/** The files of the directory by their paths in the bucket. */
async function findLocal({ directory, folder, isExcluded }: SyncArguments): Promise<{
  readonly files: ReadonlyMap<string, LocalFile>
  readonly faults: readonly LocalFault[]
}> {
  const found = await findFiles(
    [directory],
    (path) => isPart(path) || isExcluded(folder + path.split(sep).join('/')),
  )
  const files = new Map<string, LocalFile>()
  const faults = [...found.faults]
  for (const file of found.files) {
    const path = cleanPath(`./${folder}${relative(directory, file.path).split(sep).join('/')}`)
    const other = path === null ? undefined : files.get(path)
    if (path === null)
      faults.push({
        path: file.path,
        reason: `its path in the bucket would have more than ${longestPath} bytes`,
      })
    else if (other)
      faults.push({ path: file.path, reason: `has the same path in the bucket as ${other.path}` })
    else files.set(path, { ...file, name: `./${path}` })
  }
  return { files, faults }
}

async function readRemote(
  args: SyncArguments,
  context: ClientContext,
): Promise<ReadonlyMap<string, RemoteFile>> {
  const remote = new Map<string, RemoteFile>()
  for await (const { item, path, older } of newestOfPaths(args, context)) {
    const { id, size, sha256 } = item
    remote.set(path, { id, size, sha256, older })
  }
  return remote
}

/** How many files that failed do not exist any more. */
async function countVanished(failed: readonly LocalFault[], planned: readonly LocalFile[]): Promise<number> {
  const paths = new Set(planned.map(({ path }) => path))
  let vanished = 0
  for (const { path } of failed)
    if (paths.has(path) && (await lstat(path).catch(() => null)) === null) vanished += 1
  return vanished
}

/** `12 files, 3.4 MB` */
export const formatAmount = (sizes: readonly number[]): string =>
  `${formatCount(sizes.length, 'file')}, ${formatSize(sizes.reduce((sum, size) => sum + size, 0))}`
