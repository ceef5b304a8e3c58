import { lstat, rm, rmdir } from 'node:fs/promises'
import { dirname, join, relative, sep } from 'node:path'
import type { Media } from '@mediabucket/client'
import { CommandError } from '../command.ts'
import type { ClientContext } from './client-command.ts'
import { downloadItems, hashOfFile, isPart, type LocalItem, removeParts } from './downloads.ts'
import type { LocalFault } from './local-files.ts'
import { localPath } from './local-names.ts'
import { walkTree } from './local-tree.ts'
import { newestOfPaths, pairByPath, type SyncArguments, type SyncOutcome } from './sync-pass.ts'
import type { SyncRecords } from './sync-records.ts'

/**
 * Downloads the items whose bytes the directory does not have at their paths, and with `deletes` removes the files without an item. A file gets
 * its name when it is complete, so a kill at any moment leaves the earlier file or the new one.
 */
export async function syncDown(
  args: SyncArguments,
  records: SyncRecords,
  context: ClientContext,
): Promise<SyncOutcome> {
  const { directory, folder, isDryRun, deletes, isExcluded } = args
  const { output } = context
  /** Paths of files below the directory. */
  const others: string[] = []
  const replaced = new Set<string>()
  const seen = new Map<string, string>()

  async function* items(): AsyncGenerator<Media> {
    if (deletes) return yield* paired()
    for await (const { item, path } of newestOfPaths(args, context)) if (!isExcluded(path)) yield item
  }

  /** As items, and notes the files that have none. */
  async function* paired(): AsyncGenerator<Media> {
    for await (const { path, file, there } of pairByPath(findLocal(args), newestOfPaths(args, context))) {
      if (there !== null && !isExcluded(path)) yield there.item
      if (there === null && file !== null) others.push(relative(directory, file.path))
    }
  }

  async function choose(item: Media): Promise<{ name: string; isPresent: boolean }> {
    const path = item.path ?? ''
    const name = path.slice(folder.length)
    requireLocal(name, item, seen)
    const file = join(directory, name)
    const found = await lstat(file, { bigint: true }).catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return null
      throw error
    })
    if (found === null) return { name, isPresent: false }
    if (found.isDirectory()) throw new CommandError(`${file} is a directory`)
    if (found.isFile() && Number(found.size) === item.size) {
      const version = `${found.size} ${found.mtimeNs}`
      const isPresent = records.has(path, version, item.id) || (await hashOfFile(file)) === item.sha256
      if (isPresent) await records.set(path, version, item.id)
      if (isPresent) return { name, isPresent }
    }
    replaced.add(path)
    return { name, isPresent: false }
  }

  async function print({ item, path: file, isPresent }: LocalItem): Promise<void> {
    if (isPresent) return
    const path = item.path ?? ''
    if (!isDryRun) {
      const { size, mtimeNs } = await lstat(file, { bigint: true })
      await records.set(path, `${size} ${mtimeNs}`, item.id)
    }
    const action = replaced.has(path) ? 'replace' : 'download'
    if (!output.closed.aborted) await output.lines([[action, path]]).catch(() => {})
  }

  const bucket = folder === '' ? await context.client.bucket({ signal: context.interrupted }) : null
  const total = { items: bucket?.items ?? 0, bytes: bucket?.bytes ?? 0 }
  const options = { directory, total, isDryRun, naming: choose, print }
  const { downloaded, present, failed, end } = await downloadItems(items(), options, context)
  const isComplete = end === null
  const removed = deletes && isComplete ? await removeOthers(args, others, records, context) : null
  if (isComplete && failed.length === 0 && !isDryRun) await removeParts(directory)
  return {
    examined: downloaded.length + present + failed.length,
    unchanged: present,
    sent: { files: downloaded.length, bytes: downloaded.reduce((sum, size) => sum + size, 0) },
    replaced: replaced.size,
    deleted: removed?.deleted ?? 0,
    failed: [...failed, ...(removed?.faults ?? [])],
    vanished: 0,
    untried: 0,
    end,
  }
}

/** Throws CommandError for a path that this system cannot have, or cannot distinguish from that of another item. */
function requireLocal(name: string, item: Media, seen: Map<string, string>): void {
  const isPlain = name !== '' && name.split('/').every((part) => part !== '' && part !== '.' && part !== '..')
  const isPossible = isPlain && !name.includes('\0') && !isPart(name.split('/').at(-1) ?? '')
  if (!isPossible || (process.platform === 'win32' && localPath({ ...item, path: name }) !== name))
    throw new CommandError('this system cannot have a file with this name')
  if (process.platform !== 'win32' && process.platform !== 'darwin') return
  const key = name.normalize('NFC').toLowerCase()
  const other = seen.get(key)
  if (other !== undefined && other !== name)
    throw new CommandError(`this system does not distinguish its name from that of ${other}`)
  seen.set(key, name)
}

/** The files of the directory in the order of their paths. Some systems store names in another form of Unicode than the bucket. */
const findLocal = ({ directory, folder, isExcluded }: SyncArguments) =>
  walkTree({
    ...{ directory, folder },
    nameOf: (name) => name.normalize('NFC'),
    isExcluded: (path) => isPart(path) || isExcluded(folder + path),
    onFault: () => {},
  })

/** Removes files, and directories that become empty. */
async function removeOthers(
  { directory, folder, isDryRun }: SyncArguments,
  others: readonly string[],
  records: SyncRecords,
  { output }: ClientContext,
): Promise<{ readonly deleted: number; readonly faults: readonly LocalFault[] }> {
  const faults: LocalFault[] = []
  let deleted = 0
  for (const name of others) {
    const file = join(directory, name)
    const path = folder + name.split(sep).join('/')
    try {
      if (!isDryRun) await rm(file)
      if (!isDryRun) await removeEmpty(dirname(file), directory)
    } catch (error) {
      faults.push({ path: file, reason: error instanceof Error ? error.message : String(error) })
      continue
    }
    records.forget(path)
    deleted += 1
    if (!output.closed.aborted) await output.lines([['delete', path]]).catch(() => {})
  }
  return { deleted, faults }
}

async function removeEmpty(path: string, root: string): Promise<void> {
  if (relative(root, path) === '') return
  const isRemoved = await rmdir(path).then(
    () => true,
    () => false,
  )
  if (isRemoved) await removeEmpty(dirname(path), root)
}
