import type { BigIntStats, Dirent } from 'node:fs'
import { constants, type FileHandle, lstat, open, readdir, stat } from 'node:fs/promises'
import { basename, join, matchesGlob, relative, resolve, sep } from 'node:path'
import { longestPath } from '@mediabucket/client/rules'
import { CommandError } from './command.ts'

/** A file to upload. */
export interface LocalFile {
  readonly path: string
  /** As it is sent: its name, or for a file below a directory its path from this directory on, with slashes. */
  readonly name: string
  /** Bytes. */
  readonly size: number
  /** Changes with the file, like the `version` of a DiskFile. */
  readonly version: string
  /** Changes with the file, also if another one with the same size and time takes its place. */
  readonly stamp: string
}

/** The size and the modification time, then what a program cannot set: the time of the last change and the inode. */
export const stampOf = ({ size, mtimeNs, ctimeNs, ino }: BigIntStats): string =>
  `${size} ${mtimeNs} ${ctimeNs} ${ino}`

/** A path that cannot be uploaded, and the reason. */
export interface LocalFault {
  readonly path: string
  readonly reason: string
}

/** The files of the paths of a command. */
export interface FoundFiles {
  readonly files: readonly LocalFile[]
  readonly faults: readonly LocalFault[]
  /** Paths of files of the operating system, which are not uploaded. */
  readonly systemFiles: readonly string[]
  /** How many files and directories were left out. */
  readonly excluded: number
}

/** Whether a file is left out, by its name or its path below a directory of the command. */
export type IsExcluded = (path: string) => boolean

/** Patterns with a slash match the path, others a name at any depth. */
export function readExclusions(patterns: readonly string[]): IsExcluded {
  return (path) =>
    patterns.some((pattern) => matchesGlob(pattern.includes('/') ? path : basename(path), pattern))
}

/** Natural order: `2.jpg` before `10.jpg`. In one fixed locale, so that the order is the same on all systems. */
const { compare } = new Intl.Collator('en', { numeric: true })

/** Files that macOS, Windows and NAS systems create in directories of users. */
const systemFile =
  /^(\.DS_Store|\._.*|\.localized|Icon\r|Thumbs\.db|ehthumbs\.db|ehthumbs_vista\.db|desktop\.ini)$/i
const systemDirectory =
  /^(\.Spotlight-V100|\.Trashes|\.fseventsd|\.TemporaryItems|\.DocumentRevisions-V100|__MACOSX|\$RECYCLE\.BIN|System Volume Information|@eaDir)$/i

/** Whether an entry of a directory is one that macOS, Windows or a NAS has created. */
export const isOfSystem = (entry: Dirent): boolean =>
  (entry.isDirectory() ? systemDirectory : systemFile).test(entry.name)

type Inspected =
  | { readonly kind: 'file'; readonly file: Omit<LocalFile, 'name'> }
  | { readonly kind: 'directory' }
  | { readonly kind: 'link to a directory' }
  | { readonly kind: 'fault'; readonly reason: string }

/** What is at a path, and whether it can be uploaded. `isLink`: of the path itself. */
export async function inspect(path: string, isLink: boolean): Promise<Inspected> {
  const fault = (reason: string) => ({ kind: 'fault', reason }) as const
  try {
    const found = await stat(path, { bigint: true })
    if (found.isFile()) {
      if (found.size === 0n && (await hasBytes(path))) return fault(sizeUnknown)
      const version = `${found.size} ${found.mtimeNs}`
      return { kind: 'file', file: { path, size: Number(found.size), version, stamp: stampOf(found) } }
    }
    if (!found.isDirectory()) return fault('is neither a file nor a directory')
    // A link to a parent directory would never end.
    return { kind: isLink ? 'link to a directory' : 'directory' }
  } catch (error) {
    return fault(await reasonOf(path, error))
  }
}

/**
 * Finds the files at the paths and below directories: in the order of the paths, names within a directory in natural order.
 * Every path that is not uploaded has a fault, except excluded ones, and files of the operating system,
 * below directories.
 */
export async function findFiles(paths: readonly string[], isExcluded: IsExcluded): Promise<FoundFiles> {
  const files: LocalFile[] = []
  const faults: LocalFault[] = []
  const systemFiles: string[] = []
  let excluded = 0

  async function visit(path: string, isLink: boolean, root: string): Promise<void> {
    const found = await inspect(path, isLink)
    const name = sentName(path, root)
    if (found.kind === 'file' && Buffer.byteLength(name) > longestPath && name.includes('/'))
      faults.push({ path, reason: pathTooLong })
    else if (found.kind === 'file') files.push({ ...found.file, name })
    else if (found.kind === 'fault') faults.push({ path, reason: found.reason })
    else if (found.kind === 'link to a directory')
      faults.push({ path, reason: 'is a link to a directory; pass the directory itself' })
    else
      await visitDirectory(path, root).catch(async (error: unknown) => {
        faults.push({ path, reason: await reasonOf(path, error) })
      })
  }

  async function visitDirectory(path: string, root: string): Promise<void> {
    const entries = await readdir(path, { withFileTypes: true })
    entries.sort((one, other) => compare(one.name, other.name) || (one.name < other.name ? -1 : 1))
    for (const entry of entries) {
      const inside = join(path, entry.name)
      if (isExcluded(relative(root, inside))) excluded += 1
      else if (isOfSystem(entry)) systemFiles.push(inside)
      else await visit(inside, entry.isSymbolicLink(), root)
    }
  }

  for (const path of paths) {
    if (isExcluded(basename(path))) excluded += 1
    else await visit(path, false, path)
  }
  return { files, faults, systemFiles, excluded }
}

/** The service would store such a file without its directories. */
export const pathTooLong = `its path in the bucket would have more than ${longestPath} bytes`

/** `root` is the path of the command that the file is at or below. */
function sentName(path: string, root: string): string {
  if (path === root) return basename(path)
  return [basename(resolve(root)), ...relative(root, path).split(sep)].join('/')
}

const sizeUnknown =
  'its size is not known before it is read; use: cat FILE | mediabucket upload - --filename NAME'

/**
 * Whether a file of size 0 has bytes nevertheless, as in procfs and some FUSE file systems. Without waiting: files such as
 * trace_pipe have bytes only later.
 */
async function hasBytes(path: string): Promise<boolean> {
  await using file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK)
  try {
    const { bytesRead } = await file.read(new Uint8Array(1))
    return bytesRead > 0
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EAGAIN') return true
    throw error
  }
}

/** Why a path cannot be read. */
export async function reasonOf(path: string, error: unknown): Promise<string> {
  if (!(error instanceof Error)) return String(error)
  const code = 'code' in error ? error.code : null
  if (code === 'ENOENT' || code === 'ENOTDIR') {
    // Node.js replaces the invalid bytes of a name, so that the path names no file.
    if (path.includes('\ufffd')) return 'its name is not valid UTF-8; rename it'
    const isLink = await lstat(path).then(
      (found) => found.isSymbolicLink(),
      () => false,
    )
    return isLink ? 'is a link to a file that does not exist' : 'does not exist'
  }
  return code === 'EACCES' ? 'cannot be read by this user' : error.message
}

interface Range {
  readonly start: number
  readonly end: number
}

/** Bytes of one read. */
const chunkSize = 256 * 1024

/**
 * A file on the disk as a Blob of any size, read on demand. Reading fails if the file has changed, or has bytes beyond its
 * size. (Blobs of Node's openAsBlob lose the bytes beyond 2 GB: nodejs/node#52585.)
 */
export class DiskFile extends Blob {
  readonly #path: string
  readonly #range: Range
  /** Changes with the file: its size and its modification time in nanoseconds. */
  readonly version: string
  override readonly size: number

  private constructor(path: string, version: string, range: Range) {
    super([])
    this.#path = path
    this.#range = range
    this.version = version
    this.size = range.end - range.start
  }

  static async at(path: string): Promise<DiskFile> {
    const { size, mtimeNs } = await stat(path, { bigint: true })
    return new DiskFile(path, `${size} ${mtimeNs}`, { start: 0, end: Number(size) })
  }

  override slice(start = 0, end = this.size): DiskFile {
    const at = (offset: number) => Math.min(this.#range.start + offset, this.#range.end)
    return new DiskFile(this.#path, this.version, { start: at(start), end: at(end) })
  }

  override async arrayBuffer(): Promise<ArrayBuffer> {
    const bytes = new Uint8Array(this.size)
    let filled = 0
    for await (const chunk of this.#read()) {
      bytes.set(chunk, filled)
      filled += chunk.length
    }
    return bytes.buffer
  }

  override stream(): ReadableStream<Uint8Array<ArrayBuffer>> {
    return ReadableStream.from(this.#read())
  }

  async *#read(): AsyncGenerator<Uint8Array<ArrayBuffer>, void, void> {
    await using file = await open(this.#path)
    const size = await this.#check(file)
    // First: a request is complete with its last byte.
    if (this.#range.end >= size) await this.#checkEnd(file, size)
    for (let at = this.#range.start; at < this.#range.end; ) {
      const wanted = new Uint8Array(Math.min(chunkSize, this.#range.end - at))
      const { bytesRead } = await file.read(wanted, 0, wanted.length, at)
      await this.#check(file)
      if (bytesRead === 0) throw changed()
      at += bytesRead
      yield wanted.subarray(0, bytesRead)
    }
  }

  async #checkEnd(file: FileHandle, size: number): Promise<void> {
    const { bytesRead } = await file.read(new Uint8Array(1), 0, 1, size)
    if (bytesRead === 0) return
    await this.#check(file)
    throw new CommandError(sizeUnknown)
  }

  /** Returns the size. */
  async #check(file: FileHandle): Promise<number> {
    const { size, mtimeNs } = await file.stat({ bigint: true })
    if (`${size} ${mtimeNs}` !== this.version) throw changed()
    return Number(size)
  }
}

const changed = () => new CommandError('the file changed during the upload; upload it again')
