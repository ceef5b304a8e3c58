import { createHash, type Hash, randomUUID } from 'node:crypto'
import { constants, createReadStream, createWriteStream } from 'node:fs'
import { link, lstat, mkdir, open, readdir, readlink, realpath, rename, rm, stat } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { setTimeout } from 'node:timers/promises'
import type { Client, GetOptions, Media } from '@mediabucket/client'
import { CommandError } from '../command.ts'
import { createProgressBars, formatCount, type Progress } from '../terminal.ts'
import { affectsAllFiles, type ClientContext } from './client-command.ts'
import { localName, localPath, numbered } from './local-names.ts'

/** Downloads in progress at a time. */
const concurrency = 6

/** The file of an item. */
export interface LocalItem {
  readonly item: Media
  readonly path: string
  /** Whether the file was complete before. */
  readonly isPresent: boolean
}

type Choose = (item: Media) => Promise<{ readonly name: string; readonly isPresent: boolean }>

/**
 * The names of files: those of the items, or for items of a folder their paths; files that exist stay. A function chooses the path of each file
 * below the directory, and which is replaced.
 */
export type Naming = 'names' | 'paths' | Choose

const wantedName = ({ path, filename }: Media, naming: Naming): string | null =>
  (naming === 'names' ? null : path) ?? filename

export interface DownloadOutcome {
  readonly downloaded: readonly number[]
  readonly present: number
  /** Files whose name is not that of the item. */
  readonly renamed: number
  readonly failed: readonly { readonly path: string; readonly reason: string }[]
  /** The error that ended the run before every item was tried, or null. */
  readonly end: unknown
}

/**
 * Downloads the items into the directory, several at a time, and calls `print` for each file. Files that exist are never replaced: an
 * item whose file is complete is skipped, and others get a name with a number. Interrupted downloads leave partial files,
 * which the next run continues.
 */
export async function downloadItems(
  items: AsyncIterable<Media>,
  {
    directory,
    total,
    isDryRun,
    naming,
    print,
  }: {
    readonly directory: string
    /** Items and bytes, for the progress. */
    readonly total: { readonly items: number; readonly bytes: number }
    readonly isDryRun: boolean
    readonly naming: Naming
    readonly print: (file: LocalItem) => Promise<void>
  },
  { client, interrupted, explain }: ClientContext,
): Promise<DownloadOutcome> {
  const bars = createProgressBars(process.stderr)
  const stopped = new AbortController()
  const signal = AbortSignal.any([interrupted, stopped.signal])
  const target = await openTarget(directory, isDryRun, naming)
  const running = new Map<Media, Progress>()
  const downloaded: number[] = []
  const failed: { path: string; reason: string }[] = []
  let [present, renamed, settled, settledBytes, skipped] = [0, 0, 0, 0, 0]
  let end: unknown = null

  function show(): void {
    const inProgress = [...running.values()]
    const done = inProgress.reduce((sum, { done }) => sum + done, settledBytes)
    const count = Math.max(total.items, settled)
    bars.show([
      ...inProgress,
      {
        name: `${settled} of ${formatCount(count, 'file')}`,
        done,
        total: Math.max(total.bytes, done),
        skipped,
      },
    ])
  }

  async function settle(item: Media): Promise<void> {
    const { name, isPresent } = await target.choose(item)
    if (!isPresent && !isDryRun)
      await downloadItem(item, name, target, client, signal, (done, resumed) => {
        if (!running.has(item)) skipped += resumed
        running.set(item, { name, done, total: item.size })
        show()
      })
    if (isPresent) {
      present += 1
      skipped += item.size
    } else downloaded.push(item.size)
    if (item.filename !== null && name !== wantedName(item, naming)) renamed += 1
    bars.clear()
    await print({ item, path: join(directory, name), isPresent })
  }

  async function drain(): Promise<void> {
    for (;;) {
      const item = await next()
      if (item === null || signal.aborted) return
      try {
        await settle(item)
      } catch (error) {
        if (signal.aborted) return
        const explained = explain(error)
        if (affectsAllFiles(error, explained) || isDiskFull(error)) {
          end = explained ?? error
          return stopped.abort()
        }
        failed.push({
          path: wantedName(item, naming) ?? item.id,
          reason: explained?.message ?? String(error),
        })
      } finally {
        running.delete(item)
      }
      settled += 1
      settledBytes += item.size
      show()
    }
  }

  const iterator = items[Symbol.asyncIterator]()
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
  return { downloaded, present, renamed, failed, end: interrupted.aborted ? interrupted.reason : end }
}

const isDiskFull = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && ['ENOSPC', 'EDQUOT', 'EROFS'].includes(String(error.code))

/** A directory that receives items. */
interface Target {
  readonly directory: string
  /** The paths of unfinished downloads and the `ETag` of their responses, by the ids of the items. */
  readonly parts: Map<string, { readonly path: string; readonly etag: string }>
  /** Finds a name for the file of an item, which no other item of the run gets. */
  readonly choose: Choose
  readonly makeParent: (name: string) => Promise<void>
  /** Whether files are replaced. */
  readonly isMirror: boolean
}

/**
 * Returns a function that creates the directories of a file, whose name is a path below `root`. Throws CommandError if one of them is a link,
 * which would lead out of `root`, or a file.
 */
function directoriesBelow(root: string): (name: string) => Promise<void> {
  const made = new Map<string, Promise<void>>()

  async function make(parts: readonly string[]): Promise<void> {
    if (parts.length === 0) return
    await ensure(parts.slice(0, -1))
    const path = join(root, ...parts)
    await mkdir(path).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'EEXIST') throw error
    })
    if (!(await lstat(path)).isDirectory()) throw new CommandError(`${path} is no directory`)
  }

  function ensure(parts: readonly string[]): Promise<void> {
    const key = parts.join('/')
    const making = made.get(key) ?? make(parts)
    made.set(key, making)
    return making
  }

  return (name) => ensure(name.split('/').slice(0, -1))
}

/** `.ID.ETAG.mediabucket-part`, with the ETag in base64url. */
const partName = /^\.([\w~=-]+)\.([\w-]+)\.mediabucket-part$/

async function openTarget(directory: string, isDryRun: boolean, naming: Naming): Promise<Target> {
  if (!isDryRun) await mkdir(directory, { recursive: true })
  const parts: Target['parts'] = new Map()
  for (const name of await readdir(directory).catch(emptyIfMissing)) {
    const [, id, etag = ''] = partName.exec(name) ?? []
    if (id !== undefined)
      parts.set(id, { path: join(directory, name), etag: Buffer.from(etag, 'base64url').toString('latin1') })
  }
  const claimed = new Set<string>()
  const numbers = new Map<string, number>()

  async function choose(item: Media): Promise<{ name: string; isPresent: boolean }> {
    const wanted = naming === 'paths' ? localPath(item) : localName(item)
    for (let number = numbers.get(wanted) ?? 1; ; number += 1) {
      const name = number === 1 ? wanted : numbered(wanted, number)
      // Some file systems do not distinguish upper and lower case, or forms of Unicode.
      const key = name.normalize('NFC').toLowerCase()
      if (claimed.has(key)) continue
      claimed.add(key)
      numbers.set(wanted, number + 1)
      const state = await compare(join(directory, name), item)
      if (state !== 'other') return { name, isPresent: state === 'complete' }
    }
  }
  const makeParent = directoriesBelow(directory)
  const isMirror = typeof naming === 'function'
  return { directory, parts, choose: isMirror ? naming : choose, makeParent, isMirror }
}

/** Whether a file is a partial download. */
export const isPart = (name: string): boolean => partName.test(name)

/** Removes the partial files of items that the bucket no longer has. */
export async function removeParts(directory: string): Promise<void> {
  for (const name of await readdir(directory))
    if (partName.test(name)) await rm(join(directory, name), { force: true })
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
  await hashFile(path, hash)
  return hash.digest('hex')
}

/** Adds the bytes of a file to a hash, and returns their number. */
async function hashFile(path: string, hash: Hash): Promise<number> {
  let size = 0
  for await (const chunk of createReadStream(path)) {
    hash.update(chunk)
    size += chunk.length
  }
  return size
}

/** Downloads an item into a partial file, checks its bytes, and gives it its name. `onProgress` gets the bytes, and those of earlier runs. */
async function downloadItem(
  item: Media,
  name: string,
  { directory, parts, makeParent, isMirror }: Target,
  client: ClientContext['client'],
  signal: AbortSignal,
  onProgress: (done: number, resumed: number) => void,
): Promise<void> {
  const earlier = parts.get(item.id)
  let hash = createHash('sha256')
  let done = earlier ? await hashFile(earlier.path, hash) : 0
  let part = earlier?.path ?? ''
  if (earlier === undefined || done !== item.size) {
    const canResume = earlier !== undefined && done > 0 && done < item.size && isStrongTag(earlier.etag)
    const transfer = await openTransfer(client, item.id, {
      signal,
      resumeFrom: canResume ? { offset: done, etag: earlier.etag } : undefined,
    })
    if (transfer.offset === 0) {
      hash = createHash('sha256')
      done = 0
      if (earlier) await rm(earlier.path, { force: true })
      part = join(directory, `.${item.id}.${tagInName(transfer.headers.get('etag'))}.mediabucket-part`)
    }
    const resumed = done
    onProgress(done, resumed)
    await using file = await open(part, done === 0 ? 'w' : 'a')
    for await (const chunk of transfer.chunks) {
      await file.writeFile(chunk)
      hash.update(chunk)
      done += chunk.length
      onProgress(done, resumed)
    }
    const time = new Date(item.created_at)
    await file.utimes(time, time)
    await file.sync()
  }
  if (done !== item.size || hash.digest('hex') !== item.sha256) {
    await rm(part, { force: true })
    throw new CommandError('the bytes are not those that the service describes; download it again')
  }
  await makeParent(name)
  await (isMirror ? rename : giveName)(part, join(directory, name))
}

const isStrongTag = (etag: string): boolean => /^"[\x21\x23-\x7e]*"$/.test(etag)

/** A download without a usable ETag cannot be continued. */
const tagInName = (etag: string | null): string =>
  etag !== null && isStrongTag(etag) && etag.length <= 100 ? Buffer.from(etag).toString('base64url') : 'none'

/** Renames without replacing a file that another program has created in the meantime. */
async function giveName(part: string, path: string): Promise<void> {
  try {
    await link(part, path)
    await rm(part)
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : ''
    // Some file systems have no hard links.
    const hasLinks = !['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'EMLINK'].includes(code)
    if (code !== 'EEXIST' && hasLinks) throw error
    const isFree = !hasLinks && (await lstat(path).catch(() => null)) === null
    if (!isFree) throw new CommandError(`${path} was created during the download; run the command again`)
    await rename(part, path)
  }
}

type Bytes = AsyncIterable<Uint8Array> | Iterable<Uint8Array>

/** The bytes of an item as they arrive. */
export interface Transfer {
  readonly headers: Headers
  /** Where the bytes begin: 0 unless the server continues an earlier download. */
  readonly offset: number
  /** All bytes of the item; null if unknown. */
  readonly size: number | null
  readonly chunks: AsyncGenerator<Uint8Array, void, void>
}

/** Attempts to continue a download after which it fails, unless one of them receives bytes. */
const maxContinuations = 5

/** Requests the bytes of an item. A connection that breaks is continued at the byte at which it broke. */
export async function openTransfer(
  client: Client,
  reference: string,
  { signal, resumeFrom }: { readonly signal: AbortSignal; readonly resumeFrom?: GetOptions['resumeFrom'] },
): Promise<Transfer> {
  const first = await client.get(reference, { signal, resumeFrom })
  const offset = resumeFrom !== undefined && first.status === 206 ? startOf(first, resumeFrom.offset) : 0
  const length = first.headers.has('content-encoding') ? null : first.headers.get('content-length')
  const size = length === null ? null : offset + Number(length)
  return { headers: first.headers, offset, size, chunks: chunksOf() }

  async function* chunksOf(): AsyncGenerator<Uint8Array, void, void> {
    const etag = first.headers.get('etag')
    let { body } = first
    let at = offset
    for (let attempt = 1; ; attempt += 1) {
      try {
        for await (const chunk of body ?? []) {
          attempt = 0
          at += chunk.length
          yield chunk
        }
        return
      } catch (error) {
        signal.throwIfAborted()
        if (at === size) return
        const isStrong = etag?.startsWith('"') === true
        if (!isBroken(error) || !isStrong || at === 0 || attempt >= maxContinuations) throw error
        await setTimeout(250 * 2 ** attempt, undefined, { signal })
        const next = await client.get(reference, { signal, resumeFrom: { offset: at, etag } })
        if (next.status !== 206)
          throw new CommandError('the item changed during the download; download it again')
        startOf(next, at)
        body = next.body
      }
    }
  }
}

/** Checks that a 206 response begins at this byte. */
function startOf(response: Response, offset: number): number {
  const range = response.headers.get('content-range') ?? ''
  if (range.startsWith(`bytes ${offset}-`)) return offset
  throw new CommandError(`the server sent another range (${JSON.stringify(range)}) than requested`)
}

const isBroken = (error: unknown): boolean =>
  error instanceof Error && (error.name === 'ConnectionError' || error.name === 'TimeoutError')

/**
 * Checks the path of a download before anything is requested, and returns the function that writes it. A regular file is
 * replaced when the download is complete; links are followed; a FIFO or a device is written to. Throws CommandError.
 */
export async function downloadFile(
  path: string,
): Promise<(bytes: Bytes, signal: AbortSignal) => Promise<void>> {
  const target = await explained(path, () => followLinks(path))
  const found = await explained(path, () => statOrNull(target))
  if (found?.isDirectory())
    throw new CommandError(`${path} is a directory. Name a file in it: -o ${join(path, 'FILE')}`)
  const write = found === null || found.isFile() ? replaceFile : writeInto
  if (found === null) await requireDirectory(path, dirname(target))
  return (bytes, signal) => explained(path, () => write(target, bytes, signal))
}

/** The path behind links; the last one may lead to a file that does not exist yet. */
async function followLinks(path: string): Promise<string> {
  const found = await lstat(path).catch(() => null)
  if (!found?.isSymbolicLink()) return path
  if ((await statOrNull(path)) !== null) return await realpath(path)
  return await followLinks(resolve(dirname(path), await readlink(path)))
}

async function statOrNull(path: string) {
  return await stat(path).catch((error: unknown) => {
    if (codeOf(error) === 'ENOENT') return null
    throw error
  })
}

async function requireDirectory(path: string, directory: string): Promise<void> {
  if ((await explained(path, () => statOrNull(directory))) === null)
    throw new CommandError(`the directory ${directory} does not exist. Create it, or choose another one.`)
}

/** Writes a temporary file and renames it, so that an incomplete file never has the final name. */
async function replaceFile(file: string, bytes: Bytes, signal: AbortSignal): Promise<void> {
  const part = join(dirname(file), `.${basename(file).slice(0, 100)}.${randomUUID()}.part`)
  try {
    await pipeline(bytes, createWriteStream(part, { flags: 'wx', flush: true }), { signal })
    await rename(part, file)
  } catch (error) {
    await rm(part, { force: true })
    throw error
  }
}

/** Without O_CREAT and O_TRUNC: the file exists, and is not a regular one. */
async function writeInto(file: string, bytes: Bytes, signal: AbortSignal): Promise<void> {
  const handle = await open(file, constants.O_WRONLY)
  await pipeline(bytes, handle.createWriteStream(), { signal })
}

/** Names the path of the user in an error of the file system, instead of a temporary file. */
async function explained<T>(path: string, act: () => Promise<T>): Promise<T> {
  try {
    return await act()
  } catch (error) {
    if (!(error instanceof Error && 'syscall' in error && 'path' in error)) throw error
    throw new CommandError(`${path} cannot be written (${codeOf(error)}). Choose another file.`)
  }
}

const codeOf = (error: unknown) => (error instanceof Error && 'code' in error ? error.code : null)
