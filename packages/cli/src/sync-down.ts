import { lstat, rm, rmdir, stat } from 'node:fs/promises'
import { dirname, join, relative } from 'node:path'
import type { Media } from '@mediabucket/client'
import type { ClientContext } from './client-command.ts'
import { CommandError } from './command.ts'
import { downloadItems, hashOfFile, isPart, type LocalItem, removeParts } from './downloads.ts'
import { type GuardedTree, openTree } from './guarded-files.ts'
import { itemsAt } from './item-paths.ts'
import { type LocalFile, stampOf } from './local-files.ts'
import { localPath } from './local-names.ts'
import { walkTree } from './local-tree.ts'
import { foldCase, InTheWay, type StoredPath, storedNames } from './stored-names.ts'
import {
  changePrinter,
  countedOfPaths,
  pairByPath,
  refuseDeletes,
  type SyncArguments,
  type SyncFault,
  type SyncOutcome,
} from './sync-pass.ts'
import type { SyncRecords } from './sync-records.ts'

/** A file without an item. */
type Other = Pick<LocalFile, 'stamp'> & { readonly name: string; readonly path: string }

/**
 * Downloads the items whose bytes the directory does not have at their paths, and with `deletes` removes the files without an item that an
 * earlier run knew. A file gets its name when it is complete, so a kill at any moment leaves the earlier file or the new one.
 */
export async function syncDown(
  args: SyncArguments,
  records: SyncRecords,
  context: ClientContext,
): Promise<SyncOutcome> {
  const { directory, folder, isDryRun, deletes, isExcluded } = args
  const print = changePrinter(args, context)
  await using tree = isDryRun ? null : await openTree(directory)
  const others: Other[] = []
  const unread: SyncFault[] = []
  const counts = { withPath: 0, known: 0, replaced: 0 }
  /** Items whose place another file or directory has, or may have. They are tried again after the deletes. */
  const blocked: Media[] = []

  async function* items(): AsyncGenerator<Media> {
    for await (const { path, file, there } of pairs()) {
      counts.withPath += there === null ? 0 : 1 + there.others.length
      if (file !== null && records.find(path) !== null) counts.known += 1
      if (there !== null && !isExcluded(path)) yield there.item
      if (there === null && file !== null)
        others.push({ name: relative(directory, file.path), path, stamp: file.stamp })
    }
  }

  /** Without deletes, the files without an item need not be found. */
  const pairs = () =>
    deletes === 'none'
      ? itemsOnly(countedOfPaths(args, context))
      : pairByPath(
          findLocal(args, (fault) => unread.push(fault)),
          countedOfPaths(args, context),
        )

  const choice = chooseFiles(args, records, tree)

  /** Null for an item that is tried again at the end. */
  async function choose(item: Media) {
    try {
      const chosen = await choice.choose(item)
      if (chosen === null) blocked.push(item)
      return chosen
    } catch (error) {
      if (!(error instanceof InTheWay)) throw error
      blocked.push(item)
      return null
    }
  }

  async function noteFile({ item, path: file, isPresent, replaces }: LocalItem): Promise<void> {
    const path = item.path ?? ''
    choice.finished(item)
    if (isPresent) return
    if (!isDryRun) {
      const stamp = stampOf(await lstat(file, { bigint: true }))
      await records.set(path, { id: item.id, stamp, sha256: item.sha256 })
    }
    if (replaces) counts.replaced += 1
    await print(replaces ? 'replace' : 'download', path)
  }

  const bucket = folder === '' ? await context.client.bucket({ signal: context.interrupted }) : null
  const total = { items: bucket?.items ?? 0, bytes: bucket?.bytes ?? 0 }
  const options = { directory, total, isDryRun, print: noteFile }
  const first = await downloadItems(items(), { ...options, naming: choose }, context)
  const isListed = first.end === null
  const removed = isListed
    ? await removeOthers({ ...args, others, unread, tree }, counts.known, records, context)
    : null
  if (isListed && tree !== null) await clearWay(blocked, { ...args, tree }, records, context)
  const second = isListed
    ? await downloadItems(
        blocked.values(),
        { ...options, concurrency: 1, naming: choice.chooseAtLast },
        context,
      )
    : { downloaded: [], present: 0, failed: [], untried: blocked.length, end: null }
  const downloaded = [...first.downloaded, ...second.downloaded]
  const failed = [...first.failed, ...second.failed].map((fault) => ({ ...fault, key: fault.path }))
  const present = first.present + second.present
  const untried = first.untried + second.untried
  const end = first.end ?? second.end
  if (end === null && failed.length === 0 && !isDryRun) await removeParts(directory)
  return {
    examined: downloaded.length + present + failed.length + untried,
    unchanged: present,
    sent: { files: downloaded.length, bytes: downloaded.reduce((sum, size) => sum + size, 0) },
    replaced: counts.replaced,
    deleted: removed?.deleted ?? 0,
    failed: [...failed, ...unread, ...(removed?.faults ?? [])],
    vanished: 0,
    untried,
    leftAlone: removed?.leftAlone ?? 0,
    withoutPath: end === null && bucket !== null ? Math.max(0, bucket.items - counts.withPath) : null,
    refusal: removed?.refusal ?? null,
    end,
  }
}

async function* itemsOnly<There extends { readonly path: string }>(items: AsyncIterable<There>) {
  for await (const there of items) yield { path: there.path, file: null, there }
}

/** Finds the file of each item. Their directories are created, so that the file system shows which names it does not distinguish. */
function chooseFiles(
  { directory, folder, isDryRun, deletes }: SyncArguments,
  records: SyncRecords,
  tree: GuardedTree | null,
) {
  const names = storedNames(directory)
  /** The folded paths of files that are being downloaded. */
  const inProgress = new Set<string>()
  let last: Promise<unknown> = Promise.resolve()

  /** One path after the other. Null if a file is being downloaded that may have the same place. */
  function place(path: string): Promise<StoredPath | null> {
    const turn = last.then(async () => {
      const key = foldCase(path)
      // Also in place of one of its directories.
      if (key.split('/').some((_, index, parts) => inProgress.has(parts.slice(0, index + 1).join('/'))))
        return null
      const stored = await names.find(path)
      if (stored.found === null) {
        await tree?.at(stored.name, async () => {}, { creates: true })
        names.created(stored.name)
        inProgress.add(key)
      }
      return stored
    })
    last = turn.catch(() => {})
    return turn
  }

  const pathBelow = ({ path }: Media) => (path ?? '').slice(folder.length)

  async function choose(item: Media) {
    const name = pathBelow(item)
    requireLocal(name, item)
    const stored = await place(name)
    return stored === null ? null : await compare(item, stored)
  }

  async function compare(item: Media, { name, found }: StoredPath) {
    const path = item.path ?? ''
    if (found === null) return { name, isPresent: false, replaces: false }
    if (found.isFile() && Number(found.size) === item.size) {
      const stamp = stampOf(found)
      const isPresent =
        records.has(path, stamp, item.id) || (await hashOfFile(join(directory, name))) === item.sha256
      if (isPresent && !isDryRun) await records.set(path, { id: item.id, stamp, sha256: item.sha256 })
      if (isPresent) return { name, isPresent, replaces: false }
    }
    return { name, isPresent: false, replaces: true }
  }

  return {
    choose,
    /** To be called after the deletes, one item after the other. */
    async chooseAtLast(item: Media) {
      const name = pathBelow(item)
      // The deletes would have removed what is in the way.
      if (isDryRun && deletes !== 'none') return { name, isPresent: false, replaces: false }
      inProgress.clear()
      names.forget()
      return await choose(item)
    },
    /** To be called when the item has its file. */
    finished: (item: Media) => inProgress.delete(foldCase(pathBelow(item))),
  }
}

/** Throws CommandError for a path that this system cannot have. */
function requireLocal(name: string, item: Media): void {
  const isPlain = name !== '' && name.split('/').every((part) => part !== '' && part !== '.' && part !== '..')
  const isPossible = isPlain && !name.includes('\0') && !isPart(name.split('/').at(-1) ?? '')
  if (!isPossible || (process.platform === 'win32' && localPath({ ...item, path: name }) !== name))
    throw new CommandError('this system cannot have a file with this name')
}

/** The files of the directory in the order of their paths. Some systems store names in another form of Unicode than the bucket. */
const findLocal = ({ directory, folder, isExcluded }: SyncArguments, onUnread: (fault: SyncFault) => void) =>
  walkTree({
    ...{ directory, folder },
    nameOf: (name) => name.normalize('NFC'),
    isExcluded: (path) => isPart(path) || isExcluded(folder + path),
    onFault(fault) {
      if (fault.isUnread) onUnread(fault)
    },
  })

interface Removed {
  readonly deleted: number
  readonly leftAlone: number
  readonly faults: readonly SyncFault[]
  readonly refusal: string | null
}

/** Removes files, and directories that become empty. */
async function removeOthers(
  args: SyncArguments & {
    readonly others: readonly Other[]
    /** Directories that could not be read. */
    readonly unread: readonly SyncFault[]
    readonly tree: GuardedTree | null
  },
  known: number,
  records: SyncRecords,
  context: ClientContext,
): Promise<Removed> {
  const { directory, others, deletes, unread, tree } = args
  const print = changePrinter(args, context)
  const faults: SyncFault[] = []
  const wanted: Other[] = []
  for (const other of others)
    if (deletes === 'all' || (await isAsKnown(directory, other, records))) wanted.push(other)
  let leftAlone = others.length - wanted.length
  const refusal =
    wanted.length > 0 && unread.length > 0
      ? 'Nothing is deleted, because not all directories could be read.'
      : refuseDeletes(args, wanted.length, known)
  if (refusal !== null) return { deleted: 0, leftAlone, faults, refusal }
  let deleted = 0
  for (const { name, path, stamp } of wanted) {
    try {
      if (tree !== null && !(await tree.at(name, (file) => removeUnchanged(file, stamp)))) {
        leftAlone += 1
        continue
      }
      if (tree !== null) await removeEmpty(tree, dirname(name))
    } catch (error) {
      faults.push({
        path: join(directory, name),
        key: path,
        reason: error instanceof Error ? error.message : String(error),
      })
      continue
    }
    if (tree !== null) records.forget(path)
    deleted += 1
    await print('delete', path)
  }
  return { deleted, leftAlone, faults, refusal }
}

/** Removes a file, unless it has changed since it was found, which can be long before the end of the downloads. */
async function removeUnchanged(path: string, stamp: string): Promise<boolean> {
  // Of a link, its file was inspected.
  const isSame = stampOf(await stat(path, { bigint: true })) === stamp
  if (isSame) await rm(path)
  return isSame
}

/** Whether an earlier run knew the file, and it has not changed since: its bytes were those of an item. */
async function isAsKnown(
  directory: string,
  { name, path, stamp }: Other,
  records: SyncRecords,
): Promise<boolean> {
  const known = records.find(path)
  if (known === null) return false
  if (known.stamp === stamp) return true
  return known.sha256 !== '' && (await hashOfFile(join(directory, name)).catch(() => null)) === known.sha256
}

async function removeEmpty(tree: GuardedTree, name: string): Promise<void> {
  if (name === '.') return
  const isRemoved = await tree.at(name, rmdir).then(
    () => true,
    () => false,
  )
  if (isRemoved) await removeEmpty(tree, dirname(name))
}

/**
 * Removes the files in the places of directories that items need: they are replaced, if an earlier run knew them, they have not changed since, and the
 * bucket has no item for them any more.
 */
async function clearWay(
  blocked: readonly Media[],
  { directory, folder, tree }: SyncArguments & { readonly tree: GuardedTree },
  records: SyncRecords,
  context: ClientContext,
): Promise<void> {
  for (const { path } of blocked) {
    const name = await storedNames(directory)
      .find((path ?? '').slice(folder.length))
      .then(
        () => null,
        (error: unknown) => (error instanceof InTheWay ? error.file : null),
      )
    if (name === null) continue
    const found = await lstat(join(directory, name), { bigint: true })
    const other = { name, path: folder + name.normalize('NFC'), stamp: stampOf(found) }
    if (!(await isAsKnown(directory, other, records)) || (await hasItemAt(other.path, context))) continue
    await tree.at(name, (file) => rm(file))
    records.forget(other.path)
  }
}

async function hasItemAt(path: string, context: ClientContext): Promise<boolean> {
  for await (const _ of itemsAt({ text: path, path, isFolder: false }, context)) return true
  return false
}
