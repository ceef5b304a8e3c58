import { randomUUID } from 'node:crypto'
import { openAsBlob, statSync } from 'node:fs'
import { readdir, realpath, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { errorCode } from '../../core/error-code.ts'
import { type ItemId, shardOf } from '../../core/media-id.ts'
import { settleAll } from '../../core/settle-all.ts'
import { createSlab } from '../../core/slab.ts'
import { createDirectories } from '../../files/create-directories.ts'
import type { BlobStore, IntentLog } from '../blobs.ts'
import { shared } from '../memory-blob.ts'
import type { ReceivedBlob } from '../received-blob.ts'
import { createFileCommitter } from './commit-file.ts'
import { createSyncedFile } from './create-synced-file.ts'
import { createDirectorySync } from './directory-sync.ts'
import { createDiskPartialUploads } from './disk-partial-uploads.ts'
import { createDiskVariants } from './disk-variants.ts'
import { ForeignEntry } from './entry-type.ts'
import { createFileReaders } from './file-readers.ts'
import { asStorageFault, type Files, nodeFiles, unlinkIfThere } from './files.ts'
import { openStoredFile } from './open-stored-file.ts'
import { receiveFile } from './receive-file.ts'
import { openShards } from './shards.ts'
import { requireOwnDirectory } from './stored-file.ts'
import { type OnSync, timeSyncs } from './sync-timing.ts'
import { createVariantThread, openDirectVariants } from './variant-requests.ts'

/** Files that one request commits or discards at the same time. With more, too few threads of libuv's pool are left for other requests. */
const parallelism = 4

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
  const directory = await realpath(options.directory)
  const temporary = await ensureOwnDirectory(directory, 'tmp', files)
  const owner = options.thread?.owner
  const newHandle = () => join('tmp', owner === undefined ? randomUUID() : `${owner}.${randomUUID()}`)
  const uploads = await ensureOwnDirectory(directory, 'uploads', files)
  const root = await ensureOwnDirectory(directory, 'blobs', files)
  requireSameFileSystem(root, temporary, uploads)
  await sync(directory)
  const shards = await openShards(root, files, sync, options.thread !== undefined)

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
    const names = (await readdir(temporary)).filter(
      (name) => owner === undefined || name.startsWith(`${owner}.`),
    )
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

  const partialUploads = createDiskPartialUploads({ directory: uploads, shards, files, sync })

  return {
    partialUploads,
    variants,
    recovery: { matchUploads: partialUploads.matchUploads, removeTemporary },

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
    share: async (blob) => shared({ type: 'file', path: received(blob) }),

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

async function ensureOwnDirectory(directory: string, name: string, files: Files): Promise<string> {
  const path = join(directory, name)
  try {
    await files.mkdir(path, 0o700)
  } catch (error) {
    if (errorCode(error) !== 'EEXIST') throw error
  }
  requireOwnDirectory(path, files)
  return path
}
