import { lstat } from 'node:fs/promises'
import { join, relative } from 'node:path'
import type { Media } from '@mediabucket/client'
import { cleanPath } from '@mediabucket/client/rules'
import type { ClientContext } from './client-command.ts'
import { hashOfFile, isPart } from './downloads.ts'
import type { LocalFault, LocalFile } from './local-files.ts'
import { isWithin, type TreeFault, type TreeFile, walkTree } from './local-tree.ts'
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
export const syncUp = (
  args: SyncArguments,
  state: UploadState,
  context: ClientContext,
): Promise<SyncOutcome> => new UpwardSync(args, state, context).run()

/** One run of syncUp. */
class UpwardSync {
  readonly #args: SyncArguments
  readonly #state: UploadState
  readonly #context: ClientContext
  readonly #print: ReturnType<typeof changePrinter>
  readonly #counts = {
    ...{ examined: 0, unchanged: 0, adopted: 0, replaced: 0 },
    ...{ deleted: 0, vanished: 0, leftAlone: 0 },
  }
  readonly #sent = { files: 0, bytes: 0 }
  /** Items with a path that the bucket has, and paths that an earlier run knew. */
  readonly #seen = { items: 0, known: 0 }
  /** Paths of files that a repeated request of a killed run has stored. */
  readonly #handled = new Set<string>()
  readonly #failed: SyncFault[] = []
  /** Paths that were not found or read. */
  readonly #faults: TreeFault[] = []
  /** Paths of what exists and is not uploaded, each with a slash at its end: items at them and below are left out too. */
  readonly #leftOut: string[] = []
  /** Items of paths that have a file, beside those that count. */
  readonly #outdated: string[] = []
  /** Items of paths without a file. */
  readonly #leftovers: { readonly path: string; readonly ids: readonly string[] }[] = []
  #refusal: string | null = null
  #withoutPath: number | null = null

  constructor(args: SyncArguments, state: UploadState, context: ClientContext) {
    this.#args = args
    this.#state = state
    this.#context = context
    this.#print = changePrinter(args, context)
  }

  async run(): Promise<SyncOutcome> {
    const { interrupted: signal, explain } = this.#context
    try {
      return this.#outcome(await this.#passes())
    } catch (error) {
      return this.#outcome(signal.aborted ? signal.reason : (explain(error) ?? error))
    }
  }

  /** Returns the error that ends the run, or null. */
  async #passes(): Promise<unknown> {
    const { folder, isDryRun } = this.#args
    const { client, interrupted: signal } = this.#context
    // What a killed run has sent, so that the list of the bucket has it.
    if (!isDryRun) {
      const end = await this.#resolveUnanswered()
      if (end !== null) return end
    }
    // The files and the items, in the order of their paths.
    const found = { faults: this.#faults, leftOut: this.#leftOut }
    const local = findLocal(this.#args, this.#state, found)
    for await (const part of inParts(pairByPath(local, findRemote(this.#args, this.#context)), partSize)) {
      const changes = await this.#compare(part)
      if (isDryRun) await this.#printOnly(changes)
      else if (changes.length > 0) {
        const end = await this.#send(changes)
        if (end !== null) return end
      }
    }
    // Directories below it may have been read after it was replaced.
    await this.#state.requireSame()
    // Items without a file, when all files are known.
    await this.#deleteOthers()
    if (folder === '')
      this.#withoutPath = Math.max(0, (await client.bucket({ signal })).items - this.#seen.items)
    return null
  }

  #outcome(end: unknown): SyncOutcome {
    const { examined, unchanged, adopted } = this.#counts
    const untried = examined - unchanged - adopted - this.#sent.files - this.#failed.length
    return {
      ...{ ...this.#counts, sent: this.#sent, refusal: this.#refusal, withoutPath: this.#withoutPath },
      ...{ untried: Math.max(0, untried), failed: [...this.#failed, ...this.#faults], end },
    }
  }

  #resolveUnanswered(): Promise<unknown> {
    const onStored = (path: string, { size }: StoredItem) => {
      this.#handled.add(path)
      this.#counts.examined += 1
      this.#sent.files += 1
      this.#sent.bytes += size
    }
    return resolveUnanswered(this.#args, this.#state, onStored, this.#context)
  }

  /** Other items of a path that are deleted. One of this directory that was replaced, but not deleted, is found by its record. */
  #outdatedOf({ path, there }: Pick<Pair<Remote>, 'path' | 'there'>): readonly string[] {
    const ids = there?.others.map(({ id }) => id) ?? []
    const known = ids.length > 0 ? this.#state.records.find(path)?.id : null
    return this.#args.deletes === 'none' ? ids.filter((id) => id === known) : ids
  }

  /** Notes which items of a path without a file are deleted: those that an earlier run knew, and earlier ones with the same bytes, or all. */
  #noteLeftover(path: string, { item, others }: Remote): void {
    const { deletes, isExcluded } = this.#args
    if (deletes === 'none' || isExcluded(path)) return
    const isKnown = this.#state.records.find(path)?.id === item.id
    if (deletes === 'known' && !isKnown) this.#counts.leftAlone += 1
    else {
      const same = others.filter(({ sha256 }) => deletes === 'all' || sha256 === item.sha256)
      this.#leftovers.push({ path, ids: [item.id, ...same.map(({ id }) => id)] })
    }
  }

  /** Returns the files to be uploaded. */
  async #compare(part: readonly Pair<Remote>[]): Promise<readonly Change[]> {
    for (const { path, file, there } of part) {
      if (file !== null && !this.#handled.has(path)) this.#counts.examined += 1
      if (there === null) continue
      this.#seen.items += 1 + there.others.length
      if (this.#state.records.find(path) !== null) this.#seen.known += 1
      if (file === null) this.#noteLeftover(path, there)
    }
    const changes: (Change | null)[] = []
    await forEach(part.entries(), readConcurrency, async ([index, pair]) => {
      const { path, file, there } = pair
      changes[index] = null
      if (file === null) return
      const storedAs = there === null ? null : await this.#findStored(path, file, there)
      if (storedAs === null || storedAs !== there?.item.id) changes[index] = { path, file, there, storedAs }
      else {
        this.#outdated.push(...this.#outdatedOf(pair))
        if (!this.#handled.has(path)) this.#counts.unchanged += 1
      }
    })
    return changes.filter((change) => change !== null)
  }

  /** The id of the item with the bytes of a file: the one that counts or, if a key can pass to it, another one; null if there is none. */
  async #findStored(path: string, { path: local, size, stamp }: LocalFile, { item, others }: Remote) {
    if (this.#state.records.has(path, stamp, item.id)) return item.id
    this.#context.interrupted.throwIfAborted()
    const candidates = item.key == null ? [] : others
    if (size !== item.size && candidates.length === 0) return null
    // A file that cannot be read is reported by its upload.
    const sha256 = await hashOfFile(local).catch(() => null)
    if (sha256 !== item.sha256) return candidates.findLast((other) => other.sha256 === sha256)?.id ?? null
    if (others.length === 0) await this.#state.records.set(path, { id: item.id, stamp, sha256 })
    return item.id
  }

  /** What a run would send. */
  async #printOnly(changes: readonly Change[]): Promise<void> {
    for (const { path, there } of changes) await this.#print(there ? 'replace' : 'upload', path)
    const sending = changes.filter(({ storedAs }) => storedAs === null)
    this.#sent.files += sending.length
    this.#sent.bytes += sum(sending.map(({ file }) => file.size))
  }

  /** Returns the error that ends the run, or null. */
  async #send(changes: readonly Change[]): Promise<unknown> {
    const { states, openJournal } = this.#state
    const earlier = new Map(changes.map((change) => [change, this.#outdatedOf(change)]))
    // What the bucket has now, by which a run after a kill finds the items that are replaced.
    for (const { path, there } of changes)
      if (there)
        await this.#state.records.set(path, { id: there.item.id, stamp: '', sha256: there.item.sha256 })
    await this.#state.records.flush()
    // Items with the bytes get the key; the other files are uploaded.
    const replacing: [change: Change, item: Pick<StoredItem, 'id' | 'sha256'>][] = []
    const sending: Change[] = []
    for (const change of changes) {
      if (change.storedAs === null) sending.push(change)
      else {
        replacing.push([change, { id: change.storedAs }])
        await this.#print('replace', change.path)
      }
    }
    this.#counts.adopted += replacing.length
    const journal = await openJournal()
    const planned = sending.map(({ file }, index) => plan(file, this.#args.directory, index))
    const printStored = async (item: StoredItem, { index }: PlannedFile) => {
      const change = sending[index]
      if (!change) return
      const { path, file, there } = change
      if (there) replacing.push([change, item])
      else await this.#note(path, file, item)
      await this.#print(there ? 'replace' : 'upload', path)
    }
    const result = await sendFiles(
      planned,
      { states, journal, expiresAt: null, print: printStored },
      this.#context,
    )
    this.#sent.files += result.stored.length
    this.#seen.items += result.stored.length
    this.#sent.bytes += sum(result.stored)
    this.#counts.replaced += replacing.length
    const keys = new Map(changes.map(({ path, file }) => [file.path, path]))
    this.#failed.push(...result.failed.map((fault) => ({ ...fault, key: keys.get(fault.path) ?? '' })))
    this.#counts.vanished += await countVanished(result.failed)
    if (result.end !== null) return result.end
    // Earlier items are deleted after the new ones are stored, and only then a file counts as synchronized.
    const replaced = replacing.flatMap(([change, { id }]) =>
      [change.there?.item.id, ...(earlier.get(change) ?? [])].flatMap((old) =>
        !old || old === id ? [] : old,
      ),
    )
    const successors = replacing.flatMap(([{ there }, { id }]) =>
      there?.item.key == null ? [] : [[there.item.id, id] as const],
    )
    if (replaced.length > 0) await this.#deleteItems(replaced, Object.fromEntries(successors))
    for (const [{ path, file }, item] of replacing) await this.#note(path, file, item)
    await journal.remove()
    return null
  }

  #note(path: string, { stamp }: LocalFile, { id, sha256 = '' }: Pick<StoredItem, 'id' | 'sha256'>) {
    return this.#state.records.set(path, { id, stamp, sha256 })
  }

  /** Faults are known at the end only, and an item must not be deleted because its file was not found. */
  async #deleteOthers(): Promise<void> {
    const { isDryRun } = this.#args
    const held = new Set([...this.#leftOut, ...this.#faults.map(({ key }) => `${key}/`)])
    const others = this.#leftovers.filter(({ path }) => !isWithin(path, held))
    this.#refusal =
      others.length > 0 && this.#faults.some(({ isUnread }) => isUnread)
        ? 'Nothing is deleted, because not all directories could be read.'
        : refuseDeletes(this.#args, others.length, this.#seen.known)
    const deleted = this.#refusal === null ? others : []
    const outdated = this.#refusal === null ? this.#outdated : []
    const ids = [...outdated, ...deleted.flatMap(({ ids }) => ids)]
    this.#counts.deleted = isDryRun || ids.length === 0 ? ids.length : await this.#deleteItems(ids)
    for (const { path } of deleted) {
      if (!isDryRun) this.#state.records.forget(path)
      await this.#print('delete', path)
    }
  }

  /** `successors` are the items to which keys pass, by the ids of those that have them. */
  async #deleteItems(
    ids: readonly string[],
    successors: Readonly<Record<string, string>> = {},
  ): Promise<number> {
    const { deleted } = await this.#context.client.deleteMany(ids, {
      signal: this.#context.interrupted,
      replacedBy: successors,
    })
    this.#seen.items -= deleted.length
    return deleted.length
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
  { faults, leftOut }: { readonly faults: TreeFault[]; readonly leftOut: string[] },
): AsyncGenerator<TreeFile, void, void> {
  await requireSame()
  yield* walkTree({
    ...{ directory, folder, onDirectory },
    nameOf: (name) => cleanPath(`./${name}`),
    isExcluded: (path) => isPart(path) || isExcluded(folder + path),
    onFault: (fault) => faults.push(fault),
    onLeftOut: (path) => leftOut.push(`${path}/`),
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
