import { createHash, randomUUID } from 'node:crypto'
import { mkdirSync, openAsBlob, readdirSync, realpathSync, statSync } from 'node:fs'
import { readdir, rm } from 'node:fs/promises'
import { dirname, extname, join } from 'node:path'
import { errorCode, Fault, fileTooLarge } from '../../../core/faults.ts'
import { type ItemId, requireItemId, shardOf } from '../../../core/ids.ts'
import { createSlab } from '../../../core/slab.ts'
import { settleAll } from '../../../core/tasks.ts'
import type { VariantKey } from '../../../core/variants.ts'
import { startBatchThread, startOnDemand } from '../../batch-threads.ts'
import { createDirectories } from '../../durable-files.ts'
import { isFull, isIoError, isShortage } from '../../sqlite.ts'
import { type BlobStore, headLength, type IntentLog, type VariantStore } from '../blobs.ts'
import { openMemoryBlob, shareContent } from '../memory-blob.ts'
import type { ReceivedBlob } from '../received-file.ts'
import { createFileCommitter, openShards } from './blobs-directory.ts'
import { DiskPartialUploads } from './disk-partial-uploads.ts'
import {
  asStorageFault,
  createDirectorySync,
  createSyncedFile,
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
import {
  createFileReaders,
  type FileReaders,
  isStored,
  openStoredFile,
  requireOwnDirectory,
} from './stored-files.ts'
import { openExistingVariants, type VariantOutput, type VariantRequest } from './variant-database.ts'

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
  createDirectories(options.directory)
  // The data directory itself may be a link.
  const directory = realpathSync(options.directory)
  const temporary = ensureOwnDirectory(directory, 'tmp', files)
  const owner = options.thread?.owner
  const newHandle = () => join('tmp', owner === undefined ? randomUUID() : `${owner}.${randomUUID()}`)
  const uploads = ensureOwnDirectory(directory, 'uploads', files)
  const root = ensureOwnDirectory(directory, 'blobs', files)
  requireSameFileSystem(root, temporary, uploads)
  syncDirectoryNow(files, directory)
  const shards = openShards(root, files, sync, options.thread !== undefined)

  const received = ({ handle }: { handle: string }) => join(directory, handle)
  const variantRows = options.thread
    ? createVariantThread(directory, options.thread.onVariantDamage ?? (() => undefined))
    : openDirectVariants(directory)
  const readers = options.thread ? createFileReaders() : null
  const variants = createDiskVariants({
    root: join(directory, 'variants'),
    pictures: root,
    newTemporaryPath: () => received({ handle: newHandle() }),
    files,
    database: variantRows,
    readers,
    inlineSize: options.inlineSize ?? 0,
  })
  const commitFile = createFileCommitter({ shards, files, sync })

  const { intents } = options
  async function removeTemporary(owner?: string): Promise<number> {
    const names = readdirSync(temporary).filter((name) => owner === undefined || name.startsWith(`${owner}.`))
    for (const name of names) await rm(join(temporary, name), { recursive: true, force: true })
    return names.length
  }

  const commits = createSlab<Promise<void>>()
  /** Received files whose commit has begun. */
  const begun = new WeakSet<ReceivedBlob>()

  async function commit(blobs: readonly ReceivedBlob[]): Promise<void> {
    for (const blob of blobs) begun.add(blob)
    await intents?.record(blobs.map(({ id }) => id))
    for (const result of await settleAll(blobs, parallelism, (blob) => commitFile(received(blob), blob.id)))
      if (result.status === 'rejected') throw asStorageFault(result.reason)
  }

  async function remove(id: ItemId): Promise<void> {
    const shard = shards.directory(id)
    if (await shards.exists(shard)) {
      await unlinkIfThere(files, join(shard, id))
      // Also if there was no file: the process that unlinked it may have ended before its sync.
      await sync(shard)
    }
    await variants.remove(id)
  }

  // A commit that fails after the rename removes the blob itself. If that failed too, `remove` repeats it.
  async function discard(blob: ReceivedBlob): Promise<void> {
    await unlinkIfThere(files, received(blob))
    if (begun.has(blob)) await remove(blob.id)
  }

  const partialUploads = new DiskPartialUploads({ directory: uploads, shards, files, sync })

  return {
    partialUploads,
    variants,
    recovery: { matchUploads: (matched) => partialUploads.matchUploads(matched), removeTemporary },

    async receive(id, source, limit) {
      const handle = newHandle()
      return { id, handle, ...(await receiveFile(files, received({ handle }), source, limit)) }
    },

    peek: (blob) => openAsBlob(received(blob)),
    async openReceived(blob) {
      const opened = await openStoredFile(received(blob), async () => true)
      if (opened === null) throw new Error('received bytes are missing')
      return opened
    },
    share: async (blob) => shareContent({ type: 'file', path: received(blob) }),

    async commit(blobs) {
      const committed = commit(blobs)
      const key = commits.add(committed)
      await committed.finally(() => commits.remove(key))
    },

    async discard(blobs) {
      const results = await settleAll(blobs, parallelism, discard)
      const discarded = blobs.filter((blob, at) => begun.has(blob) && results[at]?.status === 'fulfilled')
      if (discarded.length > 0) await intents?.clear(discarded.map(({ id }) => id)).catch(() => undefined)
    },

    async open(id: ItemId, wholeUpTo = 0) {
      if (readers)
        return readers.open({
          ...{ root, shard: shardOf(id), name: id },
          ...{ hasIdentity: true, wholeUpTo, required: null },
        })
      const shard = shards.directory(id)
      const opened = await openStoredFile(join(shard, id), () => shards.exists(shard))
      if (opened === null) shards.requireIdentity()
      return opened
    },

    remove,
    removalsAtOnce,
    removeInterrupted: remove,

    async isReachable() {
      try {
        shards.requireIdentity()
        return true
      } catch {
        return false
      }
    },

    async checkWrites() {
      const path = received({ handle: newHandle() })
      await createSyncedFile(files, path, (file) => file.write(Uint8Array.of(1)))
      await files.unlink(path)
    },

    async close() {
      await Promise.allSettled(commits.values())
      await readers?.close()
      await variantRows.close()
    },
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
function createDiskVariants(parts: {
  readonly root: string
  /** The root of the blobs, which contains the pictures. */
  readonly pictures: string
  /** A path for a new temporary file. */
  readonly newTemporaryPath: () => string
  readonly files: Files
  readonly database: Pick<VariantRequests, 'run'>
  /** The threads of a server that open files; null in a command. */
  readonly readers: Pick<FileReaders, 'open'> | null
  /** Bytes of the largest variant that is stored in `variants.db`. */
  readonly inlineSize: number
}): VariantStore {
  const { root, pictures, newTemporaryPath, files, database, readers, inlineSize } = parts
  const nameOf = (id: ItemId, key: VariantKey) => `${requireItemId(id)}.${key}`
  const directoryOf = (id: ItemId) => join(root, shardOf(id))
  const pathOf = (id: ItemId, key: VariantKey) => join(directoryOf(id), nameOf(id, key))

  /** Throws ForeignEntry if the shard, or the root, is not a directory. */
  async function exists(shard: string): Promise<boolean> {
    for (const path of [root, shard]) {
      const found = entryTypeAt(files, path)
      if (found === 'nothing') return false
      if (found !== 'directory') throw new ForeignEntry(`${path} is not a directory`)
    }
    return true
  }

  async function ensure(shard: string): Promise<void> {
    if (await exists(shard)) return
    for (const path of [root, shard]) await files.mkdir(path, 0o700).catch(ignoreExisting)
  }

  async function storeFile(id: ItemId, key: VariantKey, bytes: Uint8Array): Promise<void> {
    const path = newTemporaryPath()
    try {
      const file = await files.create(path)
      try {
        await file.write(bytes)
        // Otherwise a power failure could leave an empty file under the name. Losing the name is harmless.
        await file.sync()
      } finally {
        await file.close()
      }
      await ensure(directoryOf(id))
      await files.rename(path, pathOf(id, key))
    } catch (error) {
      await files.unlink(path).catch(() => undefined)
      throw error
    }
  }

  return {
    async store(id, key, bytes) {
      if (bytes.byteLength > inlineSize) return storeFile(id, key, bytes)
      await database.run({ kind: 'store', name: nameOf(id, key), bytes })
    },

    async open(id, key, { pictureSize, wholeUpTo = 0 } = {}) {
      const [name, shard] = [nameOf(id, key), shardOf(id)]
      const required =
        pictureSize === undefined ? null : { root: pictures, shard, name: id, size: pictureSize }
      const bytes = await database.run({ kind: 'read', name, required }).catch(nullIfUnreadable)
      if (bytes) return openMemoryBlob(bytes)
      if (readers) return readers.open({ root, shard, name, hasIdentity: false, wholeUpTo, required })
      if (required !== null && !isStored(required)) return null
      return openStoredFile(pathOf(id, key), () => exists(directoryOf(id)))
    },

    async remove(id) {
      const directory = directoryOf(id)
      await database.run({ kind: 'remove', id })
      if (!(await exists(directory))) return
      for (const name of await readdir(directory))
        if (name.startsWith(`${id}.`)) await unlinkIfThere(files, join(directory, name))
    },
  }
}

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
function openDirectVariants(directory: string): VariantRequests {
  const variants = openExistingVariants(directory)
  return {
    async run(request) {
      const [outcome] = variants.apply([request])
      if (outcome === undefined) return null
      if ('error' in outcome) throw outcome.error
      return outcome.output
    },
    async close() {
      variants.close()
    },
  }
}

/**
 * For the server: a worker thread runs all requests that have arrived together. `onDamage` receives the reason why all variants
 * were lost.
 */
function createVariantThread(directory: string, onDamage: (reason: string) => void): VariantRequests {
  // The extension is .ts in the sources and .js in the published build.
  const file = new URL(`./variant-thread${extname(import.meta.url)}`, import.meta.url)
  const thread = startOnDemand((onFailure) =>
    startBatchThread<VariantRequest, VariantOutput, string | null>({
      file,
      name: 'variants',
      workerData: { directory },
      onReport(damage) {
        if (damage !== null) onDamage(damage)
      },
      onFailure,
    }),
  )
  return {
    run: (request) => new Promise((resolve, reject) => thread.send(request, { resolve, reject })),
    close: thread.close,
  }
}
