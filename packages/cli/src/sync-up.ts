import { lstat } from 'node:fs/promises'
import { join, relative } from 'node:path'
import type { Media } from '@mediabucket/client'
import { cleanPath } from '@mediabucket/client/rules'
import type { ClientContext } from './client-command.ts'
import { hashOfFile, isPart } from './downloads.ts'
import type { LocalFault, LocalFile } from './local-files.ts'
import { type TreeFault, type TreeFile, walkTree } from './local-tree.ts'
import { forEach, type PlannedFile } from './small-uploads.ts'
import {
  type CountedItem,
  changePrinter,
  countedOfPaths,
  type Pair,
  pairByPath,
  refuseDeletes,
  type SyncArguments,
  type SyncFault,
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

type Remote = CountedItem<Pick<Media, 'id' | 'size' | 'sha256' | 'key'>>

/** A file whose bytes the item that counts has not. */
interface Change {
  readonly path: string
  readonly file: LocalFile
  readonly there: Remote | null
  /** Another item of the path that has its bytes, and gets the key; null if the file is uploaded. */
  readonly storedAs: string | null
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
 * kill: a new item is stored before the earlier one is deleted. Of two items with a path the newer one counts, or the one with the key, which passes to the
 * new item with the deletion of the earlier one.
 */
export async function syncUp(
  args: SyncArguments,
  state: UploadState,
  context: ClientContext,
): Promise<SyncOutcome> {
  const { directory, deletes, isDryRun, isExcluded } = args
  const { client, interrupted: signal, explain } = context
  const { records, openJournal, states } = state
  const print = changePrinter(args, context)
  const counts = { examined: 0, unchanged: 0, adopted: 0, replaced: 0, deleted: 0, vanished: 0, leftAlone: 0 }
  const sent = { files: 0, bytes: 0 }
  /** Items with a path that the bucket has, and paths that an earlier run knew. */
  const seen = { items: 0, known: 0 }
  /** Paths of files that a repeated request of a killed run has stored. */
  const handled = new Set<string>()
  const failed: SyncFault[] = []
  /** Paths that were not found or read. */
  const faults: TreeFault[] = []
  /** Paths of links to directories, each with a slash at its end: items below them are left out too. */
  const links: string[] = []
  /** Items of paths that have a file, beside those that count. */
  const outdated: string[] = []
  /** Items of paths without a file. */
  const leftovers: { readonly path: string; readonly ids: readonly string[] }[] = []
  let refusal: string | null = null
  let withoutPath: number | null = null
  const outcome = (end: unknown): SyncOutcome => ({
    ...{ ...counts, sent, refusal, withoutPath },
    untried: Math.max(0, counts.examined - counts.unchanged - counts.adopted - sent.files - failed.length),
    ...{ failed: [...failed, ...faults], end },
  })

  /** Other items of a path that are deleted. One of this directory that was replaced, but not deleted, is found by its record. */
  function outdatedOf({ path, there }: Pick<Pair<Remote>, 'path' | 'there'>): readonly string[] {
    const ids = there?.others.map(({ id }) => id) ?? []
    const known = ids.length > 0 ? records.find(path)?.id : null
    return deletes === 'none' ? ids.filter((id) => id === known) : ids
  }

  /** Notes which items of a path without a file are deleted: those that an earlier run knew, and earlier ones with the same bytes, or all. */
  function noteLeftover(path: string, { item, others }: Remote): void {
    if (deletes === 'none' || isExcluded(path)) return
    const isKnown = records.find(path)?.id === item.id
    if (deletes === 'known' && !isKnown) counts.leftAlone += 1
    else {
      const same = others.filter(({ sha256 }) => deletes === 'all' || sha256 === item.sha256)
      leftovers.push({ path, ids: [item.id, ...same.map(({ id }) => id)] })
    }
  }

  /** Returns the files to be uploaded. */
  async function compare(part: readonly Pair<Remote>[]): Promise<readonly Change[]> {
    for (const { path, file, there } of part) {
      if (file !== null && !handled.has(path)) counts.examined += 1
      if (there === null) continue
      seen.items += 1 + there.others.length
      if (records.find(path) !== null) seen.known += 1
      if (file === null) noteLeftover(path, there)
    }
    const changes: (Change | null)[] = []
    await forEach(part.entries(), readConcurrency, async ([index, pair]) => {
      const { path, file, there } = pair
      changes[index] = null
      if (file === null) return
      const storedAs = there === null ? null : await findStored(path, file, there)
      if (storedAs === null || storedAs !== there?.item.id) changes[index] = { path, file, there, storedAs }
      else {
        outdated.push(...outdatedOf(pair))
        if (!handled.has(path)) counts.unchanged += 1
      }
    })
    return changes.filter((change) => change !== null)
  }

  /** The id of the item with the bytes of a file: the one that counts or, if a key can pass to it, another one; null if there is none. */
  async function findStored(path: string, { path: local, size, stamp }: LocalFile, { item, others }: Remote) {
    if (records.has(path, stamp, item.id)) return item.id
    signal.throwIfAborted()
    const candidates = item.key == null ? [] : others
    if (size !== item.size && candidates.length === 0) return null
    // A file that cannot be read is reported by its upload.
    const sha256 = await hashOfFile(local).catch(() => null)
    if (sha256 !== item.sha256) return candidates.findLast((other) => other.sha256 === sha256)?.id ?? null
    if (others.length === 0) await records.set(path, { id: item.id, stamp, sha256 })
    return item.id
  }

  /** Returns the error that ends the run, or null. */
  async function send(changes: readonly Change[]): Promise<unknown> {
    const earlier = new Map(changes.map((change) => [change, outdatedOf(change)]))
    for (const { path, there } of changes)
      if (there) await records.set(path, { id: there.item.id, stamp: '', sha256: there.item.sha256 })
    await records.flush()
    const replacing: [change: Change, item: Pick<StoredItem, 'id' | 'sha256'>][] = []
    const sending: Change[] = []
    for (const change of changes) {
      if (change.storedAs === null) sending.push(change)
      else {
        replacing.push([change, { id: change.storedAs }])
        await print('replace', change.path)
      }
    }
    counts.adopted += replacing.length
    const journal = await openJournal()
    const planned = sending.map(({ file }, index) => plan(file, directory, index))
    const printStored = async (item: StoredItem, { index }: PlannedFile) => {
      const change = sending[index]
      if (!change) return
      const { path, file, there } = change
      if (there) replacing.push([change, item])
      else await note(path, file, item)
      await print(there ? 'replace' : 'upload', path)
    }
    const result = await sendFiles(planned, { states, journal, expiresAt: null, print: printStored }, context)
    sent.files += result.stored.length
    seen.items += result.stored.length
    sent.bytes += sum(result.stored)
    counts.replaced += replacing.length
    const keys = new Map(changes.map(({ path, file }) => [file.path, path]))
    failed.push(...result.failed.map((fault) => ({ ...fault, key: keys.get(fault.path) ?? '' })))
    counts.vanished += await countVanished(result.failed)
    if (result.end !== null) return result.end
    const replaced = replacing.flatMap(([change, { id }]) =>
      [change.there?.item.id, ...(earlier.get(change) ?? [])].flatMap((old) =>
        !old || old === id ? [] : old,
      ),
    )
    const successors = replacing.flatMap(([{ there }, { id }]) =>
      there?.item.key == null ? [] : [[there.item.id, id] as const],
    )
    if (replaced.length > 0) await deleteItems(replaced, Object.fromEntries(successors))
    for (const [{ path, file }, item] of replacing) await note(path, file, item)
    await journal.remove()
    return null
  }

  const note = (path: string, { stamp }: LocalFile, { id, sha256 = '' }: Pick<StoredItem, 'id' | 'sha256'>) =>
    records.set(path, { id, stamp, sha256 })

  /** Faults are known at the end only, and an item must not be deleted because its file was not found. */
  async function deleteOthers(): Promise<void> {
    const held = [...links, ...faults.map(({ key }) => `${key}/`)]
    const others = leftovers.filter(({ path }) => !held.some((start) => `${path}/`.startsWith(start)))
    refusal =
      others.length > 0 && faults.some(({ isUnread }) => isUnread)
        ? 'Nothing is deleted, because not all directories could be read.'
        : refuseDeletes(args, others.length, seen.known)
    const deleted = refusal === null ? others : []
    const ids = [...outdated, ...deleted.flatMap(({ ids }) => ids)]
    counts.deleted = isDryRun || ids.length === 0 ? ids.length : await deleteItems(ids)
    for (const { path } of deleted) {
      if (!isDryRun) records.forget(path)
      await print('delete', path)
    }
  }

  /** `successors` are the items to which keys pass, by the ids of those that have them. */
  async function deleteItems(
    ids: readonly string[],
    successors: Readonly<Record<string, string>> = {},
  ): Promise<number> {
    const { deleted } = await client.deleteMany(ids, { signal, replacedBy: successors })
    seen.items -= deleted.length
    return deleted.length
  }

  try {
    if (!isDryRun) {
      const onStored = (path: string, { size }: StoredItem) => {
        handled.add(path)
        counts.examined += 1
        sent.files += 1
        sent.bytes += size
      }
      const end = await resolveUnanswered(args, state, onStored, context)
      if (end !== null) return outcome(end)
    }
    const pairs = pairByPath(findLocal(args, state, { faults, links }), findRemote(args, context))
    for await (const part of inParts(pairs, partSize)) {
      const changes = await compare(part)
      if (isDryRun) {
        for (const { path, there } of changes) await print(there ? 'replace' : 'upload', path)
        const sending = changes.filter(({ storedAs }) => storedAs === null)
        sent.files += sending.length
        sent.bytes += sum(sending.map(({ file }) => file.size))
      } else if (changes.length > 0) {
        const end = await send(changes)
        if (end !== null) return outcome(end)
      }
    }
    // Directories below it may have been read after it was replaced.
    await state.requireSame()
    await deleteOthers()
    if (args.folder === '') withoutPath = Math.max(0, (await client.bucket({ signal })).items - seen.items)
    return outcome(null)
  } catch (error) {
    return outcome(signal.aborted ? signal.reason : (explain(error) ?? error))
  }
}

/**
 * Sends the requests of a killed run again that have received no response, so that the list has all that they store. Returns the error that
 * ends the run, or null.
 */
async function resolveUnanswered(
  args: SyncArguments,
  { openJournal, records, states }: UploadState,
  onStored: (path: string, item: StoredItem) => void,
  context: ClientContext,
): Promise<unknown> {
  const { directory } = args
  const journal = await openJournal()
  if (!journal.begun()) return null
  const print = changePrinter(args, context)
  // What a killed run has not recorded.
  for (const [fingerprint, item] of journal.allStored())
    for (const { name } of item === 'lost' ? [] : readPlan(fingerprint, directory)) {
      const path = name.slice(2)
      if (item !== 'lost' && records.find(path) === null)
        await records.set(path, { id: item.id, stamp: '', sha256: item.sha256 ?? '' })
    }
  const isRepeatable = Date.now() - journal.startedAt < keyAge
  const files = (isRepeatable ? journal.unanswered : [])
    .flatMap((batch) => batch.files.flatMap((fingerprint) => readPlan(fingerprint, directory)))
    .map((file, index) => ({ ...file, index }))
  const printStored = async (item: StoredItem, { name }: PlannedFile) => {
    const path = name.slice(2)
    onStored(path, item)
    const isNew = records.find(path) === null
    if (isNew) await records.set(path, { id: item.id, stamp: '', sha256: item.sha256 ?? '' })
    await print(isNew ? 'upload' : 'replace', path)
  }
  // Files that fail have changed since. They are compared with the list, as all others.
  const { end } = await sendFiles(files, { states, journal, expiresAt: null, print: printStored }, context)
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
  const size = Number(version.split(' ')[0])
  return [{ path: join(directory, path), name, size, version, stamp: '', fingerprint }]
}

/** The files of the directory in the order of their paths in the bucket. */
async function* findLocal(
  { directory, folder, isExcluded }: SyncArguments,
  { requireSame, onDirectory }: UploadState,
  { faults, links }: { readonly faults: TreeFault[]; readonly links: string[] },
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
  for await (const { path, item, others } of countedOfPaths(args, context)) {
    const { id, size, sha256, key } = item
    yield { path, item: { id, size, sha256, key }, others }
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
