import type { Dirent } from 'node:fs'
import { readdir, stat } from 'node:fs/promises'
import { join, relative, sep } from 'node:path'
import { longestPath } from '@mediabucket/client/rules'
import { CommandError } from './command.ts'
import { inspect, isOfSystem, type LocalFault, type LocalFile, pathTooLong, reasonOf } from './local-files.ts'

/** A file below a directory. */
export interface TreeFile {
  /** In the bucket. */
  readonly path: string
  /** Its name is `./` and its path in the bucket. */
  readonly file: LocalFile
}

/** What cannot be read below a directory. */
export interface TreeFault extends LocalFault {
  /** The path in the bucket, without a slash at its end. The items at it and below it may have files that were not found. */
  readonly key: string
  /** Whether it is a directory that could not be read: any file may be in it. */
  readonly isUnread: boolean
}

export interface TreeOptions {
  readonly directory: string
  /** Before the paths in the bucket: empty, or with a slash at its end. */
  readonly folder: string
  /** The name of a file or directory in the bucket; null if nothing of it remains. */
  readonly nameOf: (name: string) => string | null
  /** Of a path below the directory, with slashes. */
  readonly isExcluded: (path: string) => boolean
  readonly onFault: (fault: TreeFault) => void
  /** Called with the path in the bucket of what exists and is left out: a link to a directory, and a file or directory of the operating system. */
  readonly onLeftOut?: ((path: string) => void) | undefined
  /** Called before a directory is read. */
  readonly onDirectory?: ((path: string) => Promise<void>) | undefined
}

/** Files that are inspected at a time. */
const concurrency = 32

/** What a directory contains. */
interface Entry {
  readonly path: string
  readonly isDirectory: boolean
  readonly isLink: boolean
  /** Whether its path in the bucket is that on the disk. */
  readonly isExact: boolean
  /** The path in the bucket, with a slash at its end for a directory: the bytes of these keys are in the order of the whole paths. */
  readonly key: string
}

/**
 * Finds the files below a directory in the order of the bytes of their paths in the bucket, as the service lists its items, and keeps only the
 * directories on the way to the current file in memory. Directories that have the same name in the bucket are read as one.
 */
export async function* walkTree(options: TreeOptions): AsyncGenerator<TreeFile, void, void> {
  yield* walk([options.directory], options.folder, options)
}

async function* walk(
  directories: readonly string[],
  prefix: string,
  options: TreeOptions,
): AsyncGenerator<TreeFile, void, void> {
  const entries: Entry[] = []
  for (const directory of directories) await readEntries(directory, prefix, entries, options)
  // Of several files with the same path in the bucket, the one with this name is the first, whose item another one must not replace.
  entries.sort(
    (one, other) =>
      comparePaths(one.key, other.key) ||
      Number(other.isExact) - Number(one.isExact) ||
      comparePaths(one.path, other.path),
  )
  for (let at = 0; at < entries.length; ) {
    const start = at
    const { key, isDirectory } = entries[start] ?? { key: '', isDirectory: false }
    const isSame = (entry: Entry | undefined) =>
      entry !== undefined && entry.isDirectory === isDirectory && (!isDirectory || entry.key === key)
    while (isSame(entries[at]) && (isDirectory || at < start + concurrency)) at += 1
    const group = entries.slice(start, at)
    if (!isDirectory) yield* files(group, entries[start - 1]?.key, options)
    else
      yield* walk(
        group.map(({ path }) => path),
        key,
        options,
      )
  }
}

async function readEntries(
  directory: string,
  prefix: string,
  entries: Entry[],
  options: TreeOptions,
): Promise<void> {
  const { nameOf, isExcluded, onFault, onLeftOut, onDirectory } = options
  let found: Dirent[]
  try {
    await onDirectory?.(directory)
    found = await readdir(directory, { withFileTypes: true })
  } catch (error) {
    const key = prefix.replace(/\/$/, '')
    return onFault({ path: directory, reason: await reasonOf(directory, error), key, isUnread: true })
  }
  for (const entry of found) {
    const path = join(directory, entry.name)
    const below = relative(options.directory, path).split(sep).join('/')
    if (isExcluded(below)) continue
    const name = nameOf(entry.name)
    if (isOfSystem(entry)) {
      if (name !== null) onLeftOut?.(`${prefix}${name}`)
      continue
    }
    const isDirectory = entry.isDirectory()
    const key = `${prefix}${name}${isDirectory ? '/' : ''}`
    if (name === null && isDirectory) await readEntries(path, prefix, entries, options)
    else if (name === null)
      onFault({
        path,
        reason: 'nothing of its name would remain in the bucket',
        // No item has such a path.
        key: `${prefix}${entry.name}`,
        isUnread: false,
      })
    else if (!isDirectory && Buffer.byteLength(key) > longestPath)
      onFault({ path, reason: pathTooLong, key, isUnread: false })
    else {
      const isExact = `${options.folder}${below}${isDirectory ? '/' : ''}` === key
      entries.push({ path, isDirectory, isLink: entry.isSymbolicLink(), isExact, key })
    }
  }
}

/** `before` is the key of the entry before them. */
async function* files(
  entries: readonly Entry[],
  before: string | undefined,
  { onFault, onLeftOut }: TreeOptions,
): AsyncGenerator<TreeFile, void, void> {
  const inspected = await Promise.all(
    entries.map(async (entry) => ({ ...entry, found: await inspect(entry.path, entry.isLink) })),
  )
  let last = before
  for (const { path, key, found } of inspected) {
    const fault = (reason: string) => onFault({ path, reason, key, isUnread: false })
    if (found.kind === 'link to a directory') onLeftOut?.(key)
    else if (found.kind === 'fault') fault(found.reason)
    else if (found.kind === 'directory') fault('changed while it was read')
    else if (key === last) fault('has the same path in the bucket as another file')
    else {
      last = key
      yield { path: key, file: { ...found.file, name: `./${key}` } }
    }
  }
}

/** Changes when another directory takes the path. */
export async function identityOf(path: string): Promise<string> {
  const { dev, ino, birthtimeNs } = await stat(path, { bigint: true })
  return `${dev} ${ino} ${birthtimeNs}`
}

/**
 * Returns a function that throws CommandError unless the path still is the directory that it is now: an empty mount point must not delete
 * the items.
 */
export async function stayingAt(directory: string): Promise<() => Promise<void>> {
  const first = await identityOf(directory)
  return async () => {
    const found = await identityOf(directory).catch(() => null)
    if (found !== first) throw new CommandError(`${directory} was removed or replaced by another directory`)
  }
}

/** Whether a path is one of these places, or below one. Each place ends with a slash. */
export function isWithin(path: string, places: ReadonlySet<string>): boolean {
  for (let at = path.indexOf('/'); at >= 0; at = path.indexOf('/', at + 1))
    if (places.has(path.slice(0, at + 1))) return true
  return places.has(`${path}/`)
}

/** The order of the bytes of UTF-8, in which the service lists paths: that of the code points, not of the code units of UTF-16. */
export function comparePaths(one: string, other: string): number {
  const length = Math.min(one.length, other.length)
  for (let at = 0; at < length; at += 1) {
    const [first, second] = [one.charCodeAt(at), other.charCodeAt(at)]
    if (first !== second) return rank(first) - rank(second)
  }
  return one.length - other.length
}

/** Surrogates, which are the halves of code points above U+FFFF, after all others. */
const rank = (unit: number): number => (unit >= 0xe000 ? unit - 0x800 : unit >= 0xd800 ? unit + 0x2000 : unit)
