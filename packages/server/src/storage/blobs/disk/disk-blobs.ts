import { createHash } from 'node:crypto'
import { mkdirSync, openAsBlob, realpathSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { errorCode, fileTooLarge } from '../../../core/faults.ts'
import { type ItemId, shardOf, type UploadId } from '../../../core/ids.ts'
import { Slab } from '../../../core/slab.ts'
import { settleAll } from '../../../core/tasks.ts'
import { createDirectories } from '../../durable-files.ts'
import {
  type BlobRecovery,
  type BlobStore,
  headLength,
  type IntentLog,
  type LocalBytes,
  type OpenBlob,
} from '../blobs.ts'
import { shareContent } from '../memory-blob.ts'
import type { ReceivedBlob } from '../received-file.ts'
import { commitFile, Shards } from './blobs-directory.ts'
import { DiskPartialUploads } from './disk-partial-uploads.ts'
import {
  DirectVariants,
  DiskVariants,
  TemporaryFiles,
  type VariantRequests,
  VariantThread,
} from './disk-variants.ts'
import {
  asStorageFault,
  createDirectorySync,
  createSyncedFile,
  type DirectorySync,
  type Files,
  ForeignEntry,
  type NewFile,
  nodeFiles,
  type OnSync,
  syncDirectoryNow,
  timeSyncs,
  unlinkIfThere,
} from './files.ts'
import { FileReaders, openStoredFile, requireOwnDirectory } from './stored-files.ts'
import { variantDatabase } from './variant-database.ts'

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
    databasePath: join(directory, variantDatabase),
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
