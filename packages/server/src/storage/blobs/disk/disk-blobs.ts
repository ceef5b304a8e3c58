import { createHash, randomUUID } from 'node:crypto'
import { mkdirSync, openAsBlob, readdirSync, realpathSync, statSync } from 'node:fs'
import { readdir, rm } from 'node:fs/promises'
import { dirname, extname, join } from 'node:path'
import { errorCode, Fault, fileTooLarge } from '../../../core/faults.ts'
import { type ItemId, requireItemId, shardOf, type UploadId } from '../../../core/ids.ts'
import { Slab } from '../../../core/slab.ts'
import { settleAll } from '../../../core/tasks.ts'
import type { VariantKey } from '../../../core/variants.ts'
import { type BatchThread, OnDemandThread, startBatchThread } from '../../batch-threads.ts'
import { createDirectories } from '../../durable-files.ts'
import { isFull, isIoError, isShortage } from '../../sqlite.ts'
import {
  type BlobRecovery,
  type BlobStore,
  headLength,
  type IntentLog,
  type LocalBytes,
  type OpenBlob,
  type VariantStore,
} from '../blobs.ts'
import { openMemoryBlob, shareContent } from '../memory-blob.ts'
import type { ReceivedBlob } from '../received-file.ts'
import { commitFile, Shards } from './blobs-directory.ts'
import { DiskPartialUploads } from './disk-partial-uploads.ts'
import {
  asStorageFault,
  createDirectorySync,
  createSyncedFile,
  type DirectorySync,
  entryTypeAt,
  type Files,
  ForeignEntry,
  type NewFile,
  nodeFiles,
  type OnSync,
  syncDirectoryNow,
  timeSyncs,
  unlinkIfThere,
} from './files.ts'
import { FileReaders, isStored, openStoredFile, requireOwnDirectory } from './stored-files.ts'
import {
  ExistingVariants,
  type VariantDatabase,
  type VariantOutput,
  type VariantRequest,
} from './variant-database.ts'

/** Files that one request commits or discards at the same time. With more, too few threads of libuv's pool are left for other requests. */
const parallelism = 4

/** Low, so that uploads get threads of libuv's pool for their syncs. */
const removalsAtOnce = 2

/**
 * Stores blobs as files: received ones in `tmp/`, partial uploads in `uploads/`, committed ones in
 * `blobs/<first two characters of the id>/<id>`, variants in `variants.db` and `variants/`. A handle is a path inside `directory`.
 * Creates missing directories. Tests pass `files` to inject failures.
 */
export async function openDiskBlobs(options: {
  readonly directory: string
  readonly files?: Files
  /** Without it, a commit records nothing: for backups, and for commands that commit nothing. */
  readonly intents?: IntentLog
  /** Bytes of the largest variant that is stored in `variants.db`. */
  readonly inlineSize?: number
  /** For a server, which recovers from crashes, and reads files and variants in threads. */
  readonly thread?: {
    /** The names of temporary files begin with it. */
    readonly owner?: string | undefined
    readonly onSync?: OnSync
    /** Receives the reason why all small variants were lost. */
    readonly onVariantDamage?: (reason: string) => void
  }
}): Promise<BlobStore> {
  const onSync = options.thread?.onSync
  const disk = options.files ?? nodeFiles
  const files = onSync ? timeSyncs(disk, onSync) : disk
  const sync = createDirectorySync(files)
  // The directories are created, and those of the service checked for links. The data directory itself may be a link.
  createDirectories(options.directory)
  const directory = realpathSync(options.directory)
  const temporary = ensureOwnDirectory(directory, 'tmp', files)
  const uploads = ensureOwnDirectory(directory, 'uploads', files)
  const root = ensureOwnDirectory(directory, 'blobs', files)
  requireSameFileSystem(root, temporary, uploads)
  syncDirectoryNow(files, directory)
  const shards = new Shards({ root, files, sync, hasIdentity: options.thread !== undefined })

  // What stores each kind of file.
  const temporaries = new TemporaryFiles(directory, options.thread?.owner)
  const database = options.thread
    ? new VariantThread(directory, options.thread.onVariantDamage ?? (() => undefined))
    : new DirectVariants(directory)
  const readers = options.thread ? new FileReaders() : null
  const variants = new DiskVariants({
    root: join(directory, 'variants'),
    pictures: root,
    temporaries,
    files,
    database,
    readers,
    inlineSize: options.inlineSize ?? 0,
  })
  return new DiskBlobs({
    ...{ root, files, sync, shards, temporaries, database, readers, variants },
    partialUploads: new DiskPartialUploads({ directory: uploads, shards, files, sync }),
    intents: options.intents ?? null,
  })
}

interface DiskParts {
  readonly root: string
  readonly files: Files
  readonly sync: DirectorySync
  readonly shards: Shards
  readonly temporaries: TemporaryFiles
  readonly database: Pick<VariantRequests, 'close'>
  /** The threads of a server that open files; null in a command. */
  readonly readers: FileReaders | null
  readonly variants: DiskVariants
  readonly partialUploads: DiskPartialUploads
  readonly intents: IntentLog | null
}

class DiskBlobs implements BlobStore {
  readonly partialUploads: DiskPartialUploads
  readonly variants: DiskVariants
  readonly recovery: BlobRecovery
  readonly removalsAtOnce = removalsAtOnce
  readonly #parts: DiskParts
  readonly #commits = new Slab<Promise<void>>()
  /** Received files whose commit has begun. */
  readonly #begun = new WeakSet<ReceivedBlob>()

  constructor(parts: DiskParts) {
    this.#parts = parts
    this.partialUploads = parts.partialUploads
    this.variants = parts.variants
    this.recovery = new DiskRecovery(parts)
  }

  async receive(id: ItemId, source: AsyncIterable<Uint8Array>, limit: number): Promise<ReceivedBlob> {
    const { files, temporaries } = this.#parts
    const handle = temporaries.newHandle()
    return { id, handle, ...(await receiveFile(files, temporaries.pathOf(handle), source, limit)) }
  }

  peek(blob: ReceivedBlob): Promise<Blob> {
    return openAsBlob(this.#pathOf(blob))
  }

  async openReceived(blob: ReceivedBlob): Promise<OpenBlob> {
    const opened = await openStoredFile(this.#pathOf(blob), async () => true)
    if (opened === null) throw new Error('received bytes are missing')
    return opened
  }

  async share(blob: ReceivedBlob): Promise<LocalBytes> {
    return shareContent({ type: 'file', path: this.#pathOf(blob) })
  }

  async commit(blobs: readonly ReceivedBlob[]): Promise<void> {
    const committed = this.#commitAll(blobs)
    const key = this.#commits.add(committed)
    await committed.finally(() => this.#commits.remove(key))
  }

  async #commitAll(blobs: readonly ReceivedBlob[]): Promise<void> {
    for (const blob of blobs) this.#begun.add(blob)
    await this.#parts.intents?.record(blobs.map(({ id }) => id))
    const results = await settleAll(blobs, parallelism, (blob) =>
      commitFile(this.#parts, this.#pathOf(blob), blob.id),
    )
    for (const result of results) if (result.status === 'rejected') throw asStorageFault(result.reason)
  }

  async discard(blobs: readonly ReceivedBlob[]): Promise<void> {
    const results = await settleAll(blobs, parallelism, (blob) => this.#discardOne(blob))
    const discarded = blobs.filter((blob, at) => this.#begun.has(blob) && results[at]?.status === 'fulfilled')
    if (discarded.length > 0)
      await this.#parts.intents?.clear(discarded.map(({ id }) => id)).catch(() => undefined)
  }

  /** A commit that fails after the rename removes the blob itself. If that failed too, `remove` repeats it. */
  async #discardOne(blob: ReceivedBlob): Promise<void> {
    await unlinkIfThere(this.#parts.files, this.#pathOf(blob))
    if (this.#begun.has(blob)) await this.remove(blob.id)
  }

  async open(id: ItemId, wholeUpTo = 0): Promise<OpenBlob | null> {
    const { root, shards, readers } = this.#parts
    if (readers)
      return readers.open({
        ...{ root, shard: shardOf(id), name: id },
        ...{ hasIdentity: true, wholeUpTo, required: null },
      })
    const shard = shards.directory(id)
    const opened = await openStoredFile(join(shard, id), () => shards.exists(shard))
    if (opened === null) shards.requireIdentity()
    return opened
  }

  async remove(id: ItemId): Promise<void> {
    const { files, shards, sync } = this.#parts
    const shard = shards.directory(id)
    if (await shards.exists(shard)) {
      await unlinkIfThere(files, join(shard, id))
      // Also if there was no file: the process that unlinked it may have ended before its sync.
      await sync(shard)
    }
    await this.variants.remove(id)
  }

  removeInterrupted(id: ItemId): Promise<void> {
    return this.remove(id)
  }

  async isReachable(): Promise<boolean> {
    try {
      this.#parts.shards.requireIdentity()
      return true
    } catch {
      return false
    }
  }

  async checkWrites(): Promise<void> {
    const { files, temporaries } = this.#parts
    const path = temporaries.newPath()
    await createSyncedFile(files, path, (file) => file.write(Uint8Array.of(1)))
    await files.unlink(path)
  }

  async close(): Promise<void> {
    await Promise.allSettled(this.#commits.values())
    await this.#parts.readers?.close()
    await this.#parts.database.close()
  }

  #pathOf({ handle }: ReceivedBlob): string {
    return this.#parts.temporaries.pathOf(handle)
  }
}

class DiskRecovery implements BlobRecovery {
  readonly #parts: Pick<DiskParts, 'temporaries' | 'partialUploads'>

  constructor(parts: Pick<DiskParts, 'temporaries' | 'partialUploads'>) {
    this.#parts = parts
  }

  matchUploads(matched: Parameters<BlobRecovery['matchUploads']>[0]): Promise<Map<UploadId, number>> {
    return this.#parts.partialUploads.matchUploads(matched)
  }

  removeTemporary(owner?: string): Promise<number> {
    return this.#parts.temporaries.removeAll(owner)
  }
}

/** The files in `tmp/`. A handle is the path of one inside the data directory. */
class TemporaryFiles {
  readonly #directory: string
  /** What the names of new files begin with. */
  readonly #prefix: string

  constructor(directory: string, owner: string | undefined) {
    this.#directory = directory
    this.#prefix = owner === undefined ? '' : `${owner}.`
  }

  newHandle(): string {
    return join('tmp', this.#prefix + randomUUID())
  }

  pathOf(handle: string): string {
    return join(this.#directory, handle)
  }

  newPath(): string {
    return this.pathOf(this.newHandle())
  }

  /** Removes all files, or those of an owner. Returns how many. */
  async removeAll(owner?: string): Promise<number> {
    const temporary = this.pathOf('tmp')
    const names = readdirSync(temporary).filter((name) => owner === undefined || name.startsWith(`${owner}.`))
    for (const name of names) await rm(join(temporary, name), { recursive: true, force: true })
    return names.length
  }
}

/** Files are renamed between these directories. */
function requireSameFileSystem(root: string, ...others: readonly string[]): void {
  const { dev } = statSync(root)
  for (const other of others)
    if (statSync(other).dev !== dev)
      throw new ForeignEntry(
        `${root} and ${other} are on two file systems, and files cannot be renamed between file systems. Mount the disk for the files at ${dirname(root)}. To store the catalog on another disk, make ${join(dirname(root), 'catalog.db')} a link to it.`,
      )
}

function ensureOwnDirectory(directory: string, name: string, files: Pick<Files, 'lstat'>): string {
  const path = join(directory, name)
  try {
    mkdirSync(path, { mode: 0o700 })
  } catch (error) {
    if (errorCode(error) !== 'EEXIST') throw error
  }
  requireOwnDirectory(path, files)
  return path
}

/**
 * Streams `source` into a new file at `path`, synced when it resolves. Throws Fault `file-too-large` above `limit`
 * bytes, Fault `storage-full`, and the source's error, and then leaves no file.
 */
async function receiveFile(
  files: Pick<Files, 'create' | 'unlink'>,
  path: string,
  source: AsyncIterable<Uint8Array>,
  limit: number,
): Promise<Omit<ReceivedBlob, 'id' | 'handle'>> {
  try {
    return await createSyncedFile(files, path, (file) => writeAndHash(file, source, limit))
  } catch (error) {
    throw asStorageFault(error)
  }
}

async function writeAndHash(
  file: NewFile,
  source: AsyncIterable<Uint8Array>,
  limit: number,
): Promise<Omit<ReceivedBlob, 'id' | 'handle'>> {
  const hash = createHash('sha256')
  const head: Uint8Array[] = []
  let missing = headLength
  let size = 0
  for await (const chunk of source) {
    size += chunk.byteLength
    if (size > limit) throw fileTooLarge(limit)
    // Hashing overlaps the write.
    const written = file.write(chunk)
    hash.update(chunk)
    if (missing > 0 && chunk.byteLength > 0) {
      // A copy: a view would keep the whole chunk in memory.
      head.push(new Uint8Array(chunk.subarray(0, missing)))
      missing -= Math.min(missing, chunk.byteLength)
    }
    await written
  }
  return { size, sha256: hash.digest(), head: Buffer.concat(head) }
}

/**
 * Stores small variants in `variants.db`, so that serving a page of thumbnails opens no files; all others as files,
 * `<first two characters of the id>/<id>.<key>` in `root`, which are written under temporary names first. A variant that
 * was stored before the limit changed is read where it is. Creates database and directories on demand, so an operator can
 * remove all variants at any time.
 */
class DiskVariants implements VariantStore {
  readonly #parts: DiskVariantParts

  constructor(parts: DiskVariantParts) {
    this.#parts = parts
  }

  async store(id: ItemId, key: VariantKey, bytes: Uint8Array): Promise<void> {
    const { inlineSize, database } = this.#parts
    if (bytes.byteLength > inlineSize) return this.#storeFile(id, key, bytes)
    await database.run({ kind: 'store', name: variantName(id, key), bytes })
  }

  async open(
    id: ItemId,
    key: VariantKey,
    { pictureSize, wholeUpTo = 0 }: { readonly pictureSize?: number; readonly wholeUpTo?: number } = {},
  ) {
    const { root, pictures, database, readers } = this.#parts
    const [name, shard] = [variantName(id, key), shardOf(id)]
    const required = pictureSize === undefined ? null : { root: pictures, shard, name: id, size: pictureSize }
    const bytes = await database.run({ kind: 'read', name, required }).catch(nullIfUnreadable)
    if (bytes) return openMemoryBlob(bytes)
    if (readers) return readers.open({ root, shard, name, hasIdentity: false, wholeUpTo, required })
    if (required !== null && !isStored(required)) return null
    const directory = join(root, shard)
    return openStoredFile(join(directory, name), () => this.#exists(directory))
  }

  async remove(id: ItemId): Promise<void> {
    const { root, database, files } = this.#parts
    const directory = join(root, shardOf(id))
    await database.run({ kind: 'remove', id })
    if (!(await this.#exists(directory))) return
    for (const name of await readdir(directory))
      if (name.startsWith(`${id}.`)) await unlinkIfThere(files, join(directory, name))
  }

  async #storeFile(id: ItemId, key: VariantKey, bytes: Uint8Array): Promise<void> {
    const { root, files, temporaries } = this.#parts
    const path = temporaries.newPath()
    try {
      const file = await files.create(path)
      try {
        await file.write(bytes)
        // Otherwise a power failure could leave an empty file under the name. Losing the name is harmless.
        await file.sync()
      } finally {
        await file.close()
      }
      const directory = join(root, shardOf(id))
      await this.#ensure(directory)
      await files.rename(path, join(directory, variantName(id, key)))
    } catch (error) {
      await files.unlink(path).catch(() => undefined)
      throw error
    }
  }

  async #ensure(shard: string): Promise<void> {
    if (await this.#exists(shard)) return
    for (const path of [this.#parts.root, shard])
      await this.#parts.files.mkdir(path, 0o700).catch(ignoreExisting)
  }

  /** Throws ForeignEntry if the shard, or the root, is not a directory. */
  async #exists(shard: string): Promise<boolean> {
    for (const path of [this.#parts.root, shard]) {
      const found = entryTypeAt(this.#parts.files, path)
      if (found === 'nothing') return false
      if (found !== 'directory') throw new ForeignEntry(`${path} is not a directory`)
    }
    return true
  }
}

interface DiskVariantParts {
  readonly root: string
  /** The root of the blobs, which contains the pictures. */
  readonly pictures: string
  readonly temporaries: Pick<TemporaryFiles, 'newPath'>
  readonly files: Files
  readonly database: Pick<VariantRequests, 'run'>
  /** The threads of a server that open files; null in a command. */
  readonly readers: Pick<FileReaders, 'open'> | null
  /** Bytes of the largest variant that is stored in `variants.db`. */
  readonly inlineSize: number
}

const variantName = (id: ItemId, key: VariantKey): string => `${requireItemId(id)}.${key}`

/** Variants in a database that the disk cannot read are rendered again. */
function nullIfUnreadable(error: unknown): VariantOutput {
  if (isFull(error) || isIoError(error)) return null
  if (isShortage(error))
    throw new Fault('overloaded', 'The service has no memory or file descriptor left.', { cause: error })
  throw error
}

function ignoreExisting(error: unknown): void {
  if (errorCode(error) !== 'EEXIST') throw error
}

/** Runs requests on `variants.db`. */
interface VariantRequests {
  run(request: VariantRequest): Promise<VariantOutput>
  close(): Promise<void>
}

/** For commands: on this thread. */
class DirectVariants implements VariantRequests {
  readonly #variants: VariantDatabase

  constructor(directory: string) {
    this.#variants = new ExistingVariants(directory)
  }

  async run(request: VariantRequest): Promise<VariantOutput> {
    const [outcome] = this.#variants.apply([request])
    if (outcome === undefined) return null
    if ('error' in outcome) throw outcome.error
    return outcome.output
  }

  async close(): Promise<void> {
    this.#variants.close()
  }
}

// The extension is .ts in the sources and .js in the published build.
const variantThread = new URL(`./variant-thread${extname(import.meta.url)}`, import.meta.url)

/** For the server: a worker thread runs all requests that have arrived together. */
class VariantThread implements VariantRequests {
  readonly #thread: Pick<BatchThread<VariantRequest, VariantOutput>, 'send' | 'close'>

  /** `onDamage` receives the reason why all variants were lost. */
  constructor(directory: string, onDamage: (reason: string) => void) {
    this.#thread = new OnDemandThread((onFailure) =>
      startBatchThread<VariantRequest, VariantOutput, string | null>({
        file: variantThread,
        name: 'variants',
        workerData: { directory },
        onReport: (damage) => {
          if (damage !== null) onDamage(damage)
        },
        onFailure,
      }),
    )
  }

  run(request: VariantRequest): Promise<VariantOutput> {
    return new Promise((resolve, reject) => this.#thread.send(request, { resolve, reject }))
  }

  close(): Promise<void> {
    return this.#thread.close()
  }
}
