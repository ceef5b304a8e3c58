import { createHash, type Hash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { link, lstat, mkdir, readdir, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Media } from '@mediabucket/client'
import { affectsAllFiles, type ClientContext } from './client-command.ts'
import { CommandError } from './command.ts'
import {
  createRegular,
  type GuardedTree,
  keepMode,
  modeOf,
  nullIfMissing,
  openRegular,
  openTree,
  privateMode,
  removeIrregular,
} from './guarded-files.ts'
import { localPath, numbered } from './local-names.ts'
import { createProgressBars, formatCount, type Progress } from './terminal.ts'
import { openTransfer } from './transfers.ts'

/** Downloads in progress at a time. */
const defaultConcurrency = 6

/** The file of an item. */
export interface LocalItem {
  readonly item: Media
  readonly path: string
  /** Whether the file was complete before. */
  readonly isPresent: boolean
  /** Whether it replaced another file. */
  readonly replaces: boolean
  /** The name or the path of the item, if the file has another one; else null. */
  readonly renamedFrom: string | null
}

/** The file of an item below the directory. */
interface Chosen {
  readonly name: string
  readonly isPresent: boolean
  /** Whether another file with this name is replaced. */
  readonly replaces: boolean
}

/** Null if the item gets no file. */
type Choose = (item: Media) => Promise<Chosen | null>

/**
 * The names of files: the paths of the items, or the names of those without; files that exist stay. A function chooses the path of each file
 * below the directory, and which are replaced.
 */
export type Naming = 'paths' | Choose

const wantedName = ({ path, filename }: Media): string | null => path ?? filename

export interface DownloadOutcome {
  readonly downloaded: readonly number[]
  readonly present: number
  /** Names or paths of items whose files have other ones. */
  readonly renamed: readonly { readonly from: string; readonly to: string }[]
  readonly failed: readonly { readonly path: string; readonly reason: string }[]
  /** Items that were listed and not tried. */
  readonly untried: number
  /** The error that ended the run before every item was tried, or null. */
  readonly end: unknown
}

/**
 * Downloads the items into the directory, several at a time, and calls `print` for each file. Files that exist are never replaced: an
 * item whose file is complete is skipped, and others get a name with a number. Interrupted downloads leave partial files,
 * which the next run continues.
 */
export async function downloadItems(
  items: AsyncIterable<Media> | Iterable<Media>,
  {
    directory,
    total,
    isDryRun,
    naming,
    print,
    concurrency = defaultConcurrency,
  }: {
    readonly directory: string
    /** Items and bytes, for the progress. */
    readonly total: { readonly items: number; readonly bytes: number }
    readonly isDryRun: boolean
    readonly naming: Naming
    readonly print: (file: LocalItem) => Promise<void>
    readonly concurrency?: number
  },
  { client, interrupted, explain }: ClientContext,
): Promise<DownloadOutcome> {
  const bars = createProgressBars(process.stderr)
  const stopped = new AbortController()
  const signal = AbortSignal.any([interrupted, stopped.signal])
  if (!isDryRun) await mkdir(directory, { recursive: true })
  await using tree = isDryRun ? null : await openTree(directory)
  const target = await openTarget(directory, naming)
  const running = new Map<Media, Progress>()
  const downloaded: number[] = []
  const failed: { path: string; reason: string }[] = []
  const renamed: { from: string; to: string }[] = []
  let [listed, present, finished, finishedBytes, skipped] = [0, 0, 0, 0, 0]
  let end: unknown = null

  function show(): void {
    const inProgress = [...running.values()]
    const done = inProgress.reduce((sum, { done }) => sum + done, finishedBytes)
    const count = Math.max(total.items, finished)
    bars.show([
      ...inProgress,
      {
        name: `${finished} of ${formatCount(count, 'file')}`,
        done,
        total: Math.max(total.bytes, done),
        skipped,
      },
    ])
  }

  async function finish(item: Media): Promise<void> {
    const chosen = await target.choose(item)
    if (chosen === null) return
    const { name, isPresent } = chosen
    if (!isPresent && tree !== null)
      await downloadItem({ item, tree, ...chosen }, target.parts, client, signal, (done, resumed) => {
        if (!running.has(item)) skipped += resumed
        running.set(item, { name, done, total: item.size })
        show()
      })
    if (isPresent) {
      present += 1
      skipped += item.size
    } else downloaded.push(item.size)
    const wanted = item.filename === null || naming !== 'paths' ? null : wantedName(item)
    const renamedFrom = wanted === name.normalize('NFC') ? null : wanted
    if (renamedFrom !== null) renamed.push({ from: renamedFrom, to: name })
    bars.clear()
    await print({ item, path: join(directory, name), isPresent, replaces: chosen.replaces, renamedFrom })
  }

  async function drain(): Promise<void> {
    for (;;) {
      const item = await next()
      if (item === null) return
      listed += 1
      if (signal.aborted) return
      try {
        await finish(item)
      } catch (error) {
        if (signal.aborted) return
        const explained = explain(error)
        if (affectsAllFiles(error, explained) || isDiskFull(error)) {
          end = explained ?? error
          return stopped.abort()
        }
        failed.push({
          path: wantedName(item) ?? item.id,
          reason: explained?.message ?? String(error),
        })
      } finally {
        running.delete(item)
      }
      finished += 1
      finishedBytes += item.size
      show()
    }
  }

  const iterator = Symbol.asyncIterator in items ? items[Symbol.asyncIterator]() : items[Symbol.iterator]()
  /** Null after the last item, and if the list broke off, which ends the downloads in progress too. */
  async function next(): Promise<Media | null> {
    try {
      const { done, value: item } = await iterator.next()
      return done ? null : item
    } catch (error) {
      end ??= explain(error) ?? error
      stopped.abort()
      return null
    }
  }

  await Promise.all(Array.from({ length: concurrency }, drain))
  bars.clear()
  const untried = listed - finished
  return {
    downloaded,
    present,
    renamed,
    failed,
    untried,
    end: interrupted.aborted ? interrupted.reason : end,
  }
}

const isDiskFull = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && ['ENOSPC', 'EDQUOT', 'EROFS'].includes(String(error.code))

/** A directory that receives items. */
interface Target {
  /** The names of unfinished downloads and the `ETag` of their responses, by the ids of the items. */
  readonly parts: ReadonlyMap<string, Part>
  /** Finds a name for the file of an item, which no other item of the run gets. */
  readonly choose: Choose
}

interface Part {
  readonly name: string
  readonly etag: string
}

/** `.ID.ETAG.mediabucket-part`, with the ETag in base64url. */
const partName = /^\.([\w~=-]+)\.([\w-]+)\.mediabucket-part$/

async function openTarget(directory: string, naming: Naming): Promise<Target> {
  const parts = new Map<string, Part>()
  for (const name of await readdir(directory).catch(emptyIfMissing)) {
    const [, id, etag = ''] = partName.exec(name) ?? []
    if (id !== undefined) parts.set(id, { name, etag: Buffer.from(etag, 'base64url').toString('latin1') })
  }
  /** The files and the folders of the run. */
  const claimed = new Set<string>()
  const numbers = new Map<string, number>()
  const folders = new Map<string, Promise<string>>()

  /** The folder with this path, or, if an item has the path, one with a number. */
  function folderOf(path: string): Promise<string> {
    const folder = folders.get(path) ?? findFolder(path)
    folders.set(path, folder)
    return folder
  }

  async function findFolder(path: string): Promise<string> {
    const { parent, name } = splitPath(path)
    const start = parent === '' ? '' : `${await folderOf(parent)}/`
    for (let number = 1; ; number += 1) {
      const folder = start + (number === 1 ? name : numbered(name, number))
      const key = comparableName(folder)
      if (claimed.has(key)) continue
      claimed.add(key)
      const found = await lstat(join(directory, folder)).catch(nullIfMissing)
      if (found === null || !found.isFile()) return folder
      claimed.delete(key)
    }
  }

  async function choose(item: Media): Promise<Chosen> {
    const { parent, name: base } = splitPath(localPath(item))
    const wanted = parent === '' ? base : `${await folderOf(parent)}/${base}`
    for (let number = numbers.get(wanted) ?? 1; ; number += 1) {
      const name = number === 1 ? wanted : numbered(wanted, number)
      const key = comparableName(name)
      if (claimed.has(key)) continue
      claimed.add(key)
      numbers.set(wanted, number + 1)
      const state = await compare(join(directory, name), item)
      if (state !== 'other') return { name, isPresent: state === 'complete', replaces: false }
    }
  }
  return { parts, choose: typeof naming === 'function' ? naming : choose }
}

/** Some file systems do not distinguish upper and lower case, or forms of Unicode. */
const comparableName = (name: string): string => name.normalize('NFC').toLowerCase()

function splitPath(path: string): { readonly parent: string; readonly name: string } {
  const at = path.lastIndexOf('/')
  return { parent: path.slice(0, Math.max(0, at)), name: path.slice(at + 1) }
}

/** Whether a file is a partial download. */
export const isPart = (name: string): boolean => partName.test(name)

/** Removes the partial files of items that the bucket no longer has. */
export async function removeParts(directory: string): Promise<void> {
  await using tree = await openTree(directory)
  for (const entry of await readdir(directory, { withFileTypes: true }))
    if (partName.test(entry.name) && !entry.isDirectory())
      await tree.at(entry.name, (path) => rm(path, { force: true }))
}

function emptyIfMissing(error: NodeJS.ErrnoException): string[] {
  if (error.code === 'ENOENT') return []
  throw error
}

/** Whether a path is free, or has the bytes of the item. Another item can have the same name, size and time, so the bytes decide. */
async function compare(path: string, item: Media): Promise<'free' | 'complete' | 'other'> {
  const found = await lstat(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return null
    throw error
  })
  if (found === null) return 'free'
  if (!found.isFile() || found.size !== item.size) return 'other'
  return (await hashOfFile(path)) === item.sha256 ? 'complete' : 'other'
}

/** The SHA-256 of a file in hex. */
export async function hashOfFile(path: string): Promise<string> {
  const hash = createHash('sha256')
  await hashFile(createReadStream(path), hash)
  return hash.digest('hex')
}

/** Adds the bytes of a file to a hash, and returns their number. */
async function hashFile(chunks: AsyncIterable<Buffer>, hash: Hash): Promise<number> {
  let size = 0
  for await (const chunk of chunks) {
    hash.update(chunk)
    size += chunk.length
  }
  return size
}

/** Downloads an item into a partial file, checks its bytes, and gives it its name. `onProgress` gets the bytes, and those of earlier runs. */
async function downloadItem(
  { item, name, replaces, tree }: Chosen & { readonly item: Media; readonly tree: GuardedTree },
  parts: Target['parts'],
  client: ClientContext['client'],
  signal: AbortSignal,
  onProgress: (done: number, resumed: number) => void,
): Promise<void> {
  const earlier = await readPart(tree, parts.get(item.id))
  let { part = '', hash, done } = earlier ?? { hash: createHash('sha256'), done: 0 }
  if (earlier === null || done !== item.size) {
    const canResume = earlier !== null && done > 0 && done < item.size && isStrongTag(earlier.etag)
    const transfer = await openTransfer(client, item.id, {
      signal,
      resumeFrom: canResume ? { offset: done, etag: earlier.etag } : undefined,
    })
    if (transfer.offset === 0) {
      hash = createHash('sha256')
      done = 0
      if (earlier !== null) await tree.at(part, removeFile)
      part = `.${item.id}.${tagInName(transfer.headers.get('etag'))}.mediabucket-part`
      await tree.at(part, removeFile)
    }
    const resumed = done
    onProgress(done, resumed)
    const mode = replaces ? await tree.at(name, replacedMode) : null
    await using file = await tree.at(part, (path) =>
      resumed === 0
        ? createRegular(path, mode === null ? undefined : privateMode)
        : openRegular(path, 'append'),
    )
    for await (const chunk of transfer.chunks) {
      await file.writeFile(chunk)
      hash.update(chunk)
      done += chunk.length
      onProgress(done, resumed)
    }
    if (mode !== null) await keepMode(file, mode)
    const time = new Date(item.created_at)
    await file.utimes(time, time)
    await file.sync()
  }
  if (done !== item.size || hash.digest('hex') !== item.sha256) {
    await tree.at(part, removeFile)
    throw new CommandError('the bytes are not those that the service describes; download it again')
  }
  await tree.at(part, (from) =>
    tree.at(name, (to) => (replaces ? rename(from, to) : giveName(from, to, name)), { creates: true }),
  )
}

/** The permissions of the file that is replaced; null if it is none any more. */
async function replacedMode(path: string): Promise<number | null> {
  const found = await lstat(path).catch(nullIfMissing)
  return found?.isFile() === true ? modeOf(found) : null
}

/** What an earlier run has downloaded; null for nothing, and for anything but a file, which is removed. */
async function readPart(tree: GuardedTree, found: Part | undefined) {
  if (found === undefined) return null
  const { name: part, etag } = found
  return await tree.at(part, async (path) => {
    await removeIrregular(path)
    const file = await openRegular(path, 'read').catch(nullIfMissing)
    if (file === null) return null
    const hash = createHash('sha256')
    return { part, etag, hash, done: await hashFile(file.createReadStream(), hash) }
  })
}

/** Also a link, a FIFO or a device, but no directory. */
const removeFile = (path: string): Promise<void> => rm(path, { force: true })

const isStrongTag = (etag: string): boolean => /^"[\x21\x23-\x7e]*"$/.test(etag)

/** A download without a usable ETag cannot be continued. */
const tagInName = (etag: string | null): string =>
  etag !== null && isStrongTag(etag) && etag.length <= 100 ? Buffer.from(etag).toString('base64url') : 'none'

/** Renames without replacing a file that another program has created in the meantime. */
async function giveName(part: string, path: string, name: string): Promise<void> {
  try {
    await link(part, path)
    await rm(part)
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : ''
    // Some file systems have no hard links.
    const hasLinks = !['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'EMLINK'].includes(code)
    if (code !== 'EEXIST' && hasLinks) throw error
    const isFree = !hasLinks && (await lstat(path).catch(() => null)) === null
    if (!isFree) throw new CommandError(`${name} was created during the download; run the command again`)
    await rename(part, path)
  }
}
