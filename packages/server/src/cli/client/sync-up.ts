import { lstat } from 'node:fs/promises'
import { join, relative } from 'node:path'
import type { Media } from '@mediabucket/client'
import { cleanPath } from '../../core/names.ts'
import type { ClientContext } from './client-command.ts'
import { hashOfFile, isPart } from './downloads.ts'
import type { LocalFault, LocalFile } from './local-files.ts'
import { type TreeFile, walkTree } from './local-tree.ts'
import { forEach, type PlannedFile } from './small-uploads.ts'
import {
  type NewestItem,
  newestOfPaths,
  type Pair,
  pairByPath,
  type SyncArguments,
  type SyncOutcome,
} from './sync-pass.ts'
import type { SyncRecords } from './sync-records.ts'
import { sendFiles } from './upload.ts'
import type { StoredItem, UploadJournal, UploadStates } from './upload-state.ts'

/** Files that are read at a time, to compare their bytes. */
const readConcurrency = 4

/** Paths that are compared, and whose files are then uploaded, together. */
const partSize = 2_000

/** How long a request can be repeated with its key: an hour less than services store keys (docs/interface.md I5). Milliseconds. */
const keyAge = 23 * 3_600_000

type Remote = NewestItem<Pick<Media, 'id' | 'size' | 'sha256'>>

/** A file without an item that has its bytes. */
interface Change {
  readonly path: string
  readonly file: LocalFile
  readonly there: Remote | null
}

export interface UploadState {
  readonly records: SyncRecords
  /** Opens the journal of the uploads in progress: that of an earlier run, if it was killed. */
  readonly openJournal: () => Promise<UploadJournal>
  readonly states: UploadStates
  /** Throws CommandError if another directory has taken the path of the one that is synchronized. */
  readonly requireSame: () => Promise<void>
  /** As in TreeOptions. */
  readonly onDirectory?: ((path: string) => Promise<void>) | undefined
}

/**
 * Uploads the files of a directory whose bytes the bucket does not have at their paths, deletes the items that they replace and then, with
 * `deletes`, the items without a file. Both sides are read in the order of the paths, a part at a time. Each step can be repeated after a
 * kill: a new item is stored before the earlier one is deleted, and of two items with a path the newer one counts.
 */
export async function syncUp(
  args: SyncArguments,
  state: UploadState,
  context: ClientContext,
): Promise<SyncOutcome> {
  const { directory, deletes, isDryRun, isExcluded } = args
  const { client, interrupted: signal, output, report, explain } = context
  const { records, openJournal, states } = state
  const counts = { examined: 0, replaced: 0, deleted: 0, vanished: 0, untried: 0 }
  let unchanged = 0
  const sent = { files: 0, bytes: 0 }
  /** Paths of files that a repeated request of a killed run has stored. */
  const settled = new Set<string>()
  const failed: LocalFault[] = []
  /** Paths that were not found or read. */
  const faults: LocalFault[] = []
  /** Paths of links to directories, each with a slash at its end: items below them are left out too. */
  const links: string[] = []
  /** Earlier items of paths that have a file. */
  const outdated: string[] = []
  /** Items of paths without a file. */
  const leftovers: [id: string, path: string][] = []
  const outcome = (end: unknown): SyncOutcome => ({
    ...{ ...counts, unchanged, sent },
    ...{ failed: [...failed, ...faults], end },
  })
  const print = async (action: string, path: string) => {
    if (!output.closed.aborted) await output.lines([[action, path]]).catch(() => {})
  }

  /** An item of this directory that was replaced, but not deleted, is found by its record. */
  function noteOutdated({ path, there }: Pair<Remote>): void {
    const known = there && there.older.length > 0 ? records.itemOf(path) : null
    outdated.push(...(there?.older.filter((id) => deletes || id === known) ?? []))
  }

  /** Returns the files to be uploaded. */
  async function compare(part: readonly Pair<Remote>[]): Promise<readonly Change[]> {
    for (const { path, file, there } of part)
      if (file === null && there !== null && deletes && !isExcluded(path))
        for (const id of [there.item.id, ...there.older]) leftovers.push([id, path])
    const changes: (Change | null)[] = []
    await forEach(part.entries(), readConcurrency, async ([index, pair]) => {
      const { path, file, there } = pair
      changes[index] = null
      if (file === null) return
      const isSame = there !== null && (await isStored(path, file, there))
      if (!isSame) changes[index] = { path, file, there }
      else {
        noteOutdated(pair)
        if (!settled.has(path)) unchanged += 1
      }
    })
    counts.examined += part.filter(({ file }) => file !== null).length
    return changes.filter((change) => change !== null)
  }

  async function isStored(path: string, { path: local, size, version }: LocalFile, { item, older }: Remote) {
    if (records.has(path, version, item.id)) return true
    signal.throwIfAborted()
    // A file that cannot be read is reported by its upload.
    const isSame = size === item.size && (await hashOfFile(local).catch(() => null)) === item.sha256
    if (isSame && older.length === 0) await records.set(path, version, item.id)
    return isSame
  }

  /** Returns the error that ends the run, or null. */
  async function send(changes: readonly Change[]): Promise<unknown> {
    for (const { path, there } of changes) if (there) await records.set(path, '', there.item.id)
    await records.flush()
    const journal = await openJournal()
    const planned = changes.map(({ file }, index) => plan(file, directory, index))
    const replacing: [change: Change, item: StoredItem][] = []
    const printStored = async (item: StoredItem, { index }: PlannedFile) => {
      const change = changes[index]
      if (!change) return
      const { path, file, there } = change
      if (there) replacing.push([change, item])
      else await records.set(path, file.version, item.id)
      await print(there ? 'replace' : 'upload', path)
    }
    const result = await sendFiles(planned, { states, journal, expiresAt: null, print: printStored }, context)
    sent.files += result.stored.length
    sent.bytes += sum(result.stored)
    counts.replaced += replacing.length
    counts.untried += result.untried
    failed.push(...result.failed)
    counts.vanished += await countVanished(result.failed)
    if (result.end !== null) return result.end
    const replaced = replacing.flatMap(([{ there }, { id }]) =>
      there ? [there.item.id, ...there.older].filter((old) => old !== id) : [],
    )
    if (replaced.length > 0) await deleteItems(replaced)
    for (const [{ path, file }, { id }] of replacing) await records.set(path, file.version, id)
    await journal.remove()
    return null
  }

  /** Faults are known at the end only, and an item must not be deleted because its file was not found. */
  async function deleteOthers(hasFaults: boolean): Promise<void> {
    const isLeftOut = (path: string) => links.some((link) => path.startsWith(link))
    const others = hasFaults ? [] : leftovers.filter(([, path]) => !isLeftOut(path))
    const ids = [...outdated, ...others.map(([id]) => id)]
    counts.deleted = isDryRun || ids.length === 0 ? ids.length : await deleteItems(ids)
    let printed: string | null = null
    for (const [, path] of others) {
      if (!isDryRun) records.forget(path)
      if (path !== printed) await print('delete', path)
      printed = path
    }
  }

  const deleteItems = async (ids: readonly string[]) =>
    (await client.deleteMany(ids, { signal })).deleted.length

  try {
    if (!isDryRun) {
      const onStored = (path: string, { size }: StoredItem) => {
        settled.add(path)
        sent.files += 1
        sent.bytes += size
      }
      const end = await settleUnanswered(args, state, onStored, context)
      if (end !== null) return outcome(end)
    }
    const pairs = pairByPath(findLocal(args, state, { faults, links }), findRemote(args, context))
    for await (const part of inParts(pairs, partSize)) {
      const changes = await compare(part)
      if (isDryRun) {
        for (const { path, there } of changes) await print(there ? 'replace' : 'upload', path)
        sent.files += changes.length
        sent.bytes += sum(changes.map(({ file }) => file.size))
      } else if (changes.length > 0) {
        const end = await send(changes)
        if (end !== null) return outcome(end)
      }
    }
    if (deletes && faults.length > 0)
      report('Nothing is deleted from the bucket, because not all files were found.')
    // Directories below it may have been read after it was replaced.
    await state.requireSame()
    await deleteOthers(faults.length > 0)
    return outcome(null)
  } catch (error) {
    return outcome(signal.aborted ? signal.reason : (explain(error) ?? error))
  }
}

/**
 * Sends the requests of a killed run again that have received no response, so that the list has all that they store. Returns the error that
 * ends the run, or null.
 */
async function settleUnanswered(
  { directory }: SyncArguments,
  { openJournal, records, states }: UploadState,
  onStored: (path: string, item: StoredItem) => void,
  context: ClientContext,
): Promise<unknown> {
  const journal = await openJournal()
  if (!journal.begun()) return null
  const { output } = context
  const isRepeatable = Date.now() - journal.startedAt < keyAge
  const files = (isRepeatable ? journal.unanswered : [])
    .flatMap((batch) => batch.files.flatMap((fingerprint) => readPlan(fingerprint, directory)))
    .map((file, index) => ({ ...file, index }))
  const print = async (item: StoredItem, { name }: PlannedFile) => {
    const path = name.slice(2)
    onStored(path, item)
    const action = records.itemOf(path) === null ? 'upload' : 'replace'
    if (!output.closed.aborted) await output.lines([[action, path]]).catch(() => {})
  }
  // Files that fail have changed since. They are compared with the list, as all others.
  const { end } = await sendFiles(files, { states, journal, expiresAt: null, print }, context)
  if (end === null) await journal.remove()
  return end
}

/** With a fingerprint from which readPlan finds the file again. */
const plan = (file: LocalFile, directory: string, index: number): PlannedFile => ({
  ...{ ...file, index },
  fingerprint: JSON.stringify([relative(directory, file.path), file.version, file.name]),
})

function readPlan(fingerprint: string, directory: string): Omit<PlannedFile, 'index'>[] {
  if (!fingerprint.startsWith('[')) return []
  const values: unknown = JSON.parse(fingerprint)
  const [path, version, name]: unknown[] = Array.isArray(values) ? values : []
  if (typeof path !== 'string' || typeof version !== 'string' || typeof name !== 'string') return []
  return [{ path: join(directory, path), name, size: Number(version.split(' ')[0]), version, fingerprint }]
}

/** The files of the directory in the order of their paths in the bucket. */
async function* findLocal(
  { directory, folder, isExcluded }: SyncArguments,
  { requireSame, onDirectory }: UploadState,
  { faults, links }: { readonly faults: LocalFault[]; readonly links: string[] },
): AsyncGenerator<TreeFile, void, void> {
  await requireSame()
  yield* walkTree({
    ...{ directory, folder, onDirectory },
    nameOf: (name) => cleanPath(`./${name}`),
    isExcluded: (path) => isPart(path) || isExcluded(folder + path),
    onFault: (fault) => faults.push(fault),
    onLink: (path) => links.push(`${path}/`),
  })
}

/** With the members that are compared, so that a part takes little memory. */
async function* findRemote(args: SyncArguments, context: ClientContext): AsyncGenerator<Remote, void, void> {
  for await (const { path, item, older } of newestOfPaths(args, context)) {
    const { id, size, sha256 } = item
    yield { path, item: { id, size, sha256 }, older }
  }
}

async function* inParts<T>(items: AsyncIterable<T>, size: number): AsyncGenerator<readonly T[], void, void> {
  let part: T[] = []
  for await (const item of items) {
    part.push(item)
    if (part.length < size) continue
    yield part
    part = []
  }
  if (part.length > 0) yield part
}

/** How many files that failed do not exist any more. */
async function countVanished(failed: readonly LocalFault[]): Promise<number> {
  let vanished = 0
  for (const { path } of failed) if ((await lstat(path).catch(() => null)) === null) vanished += 1
  return vanished
}

const sum = (sizes: readonly number[]): number => sizes.reduce((total, size) => total + size, 0)
