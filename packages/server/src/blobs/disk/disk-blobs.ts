import { randomUUID } from 'node:crypto'
import { openAsBlob, statSync } from 'node:fs'
import { readdir, realpath, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { errorCode } from '../../core/error-code.ts'
import { type MediaId, shardOf } from '../../core/media-id.ts'
import { createDirectories } from '../../files/create-directories.ts'
import type { BlobStore } from '../blobs.ts'
import { createFileCommitter } from './commit-file.ts'
import { createDirectorySync } from './directory-sync.ts'
import { createDiskPartialUploads } from './disk-partial-uploads.ts'
import { createDiskVariants } from './disk-variants.ts'
import { entryTypeAt, ForeignEntry } from './entry-type.ts'
import { createFileReaders } from './file-readers.ts'
import { asStorageFault, type Files, nodeFiles, unlinkIfThere } from './files.ts'
import { openStoredFile } from './open-stored-file.ts'
import { openPendingShards } from './pending-shards.ts'
import { receiveFile } from './receive-file.ts'
import { openShards } from './shards.ts'
import { startFileWriterThread } from './start-file-writer-thread.ts'
import { type OnSync, timeSyncs } from './sync-timing.ts'
import { openDirectVariants, startVariantThread } from './variant-requests.ts'

/**
 * Stores blobs as files: received ones in `tmp/`, partial uploads in `uploads/`, committed ones in
 * `blobs/<first two characters of the id>/<id>`, variants in `variants.db` and `variants/`. A handle is a path inside `directory`.
 * Creates missing directories. Tests pass `files` to inject failures.
 */
export async function openDiskBlobs(options: {
  readonly directory: string
  readonly files?: Files
  /** Bytes of the largest variant that is stored in `variants.db`. */
  readonly inlineSize?: number
  /** A server commits files in a worker thread; a command, which stores few, does without. */
  readonly thread?: {
    readonly onFailure: (error: Error) => void
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
  const uploads = await ensureOwnDirectory(directory, 'uploads', files)
  const root = await ensureOwnDirectory(directory, 'blobs', files)
  // Only a server recovers from crashes.
  const records = options.thread ? await ensureOwnDirectory(directory, 'pending', files) : null
  requireOneDisk(root, temporary, uploads)
  await sync(directory)
  const shards = await openShards(root, files, sync, options.thread !== undefined)

  const received = ({ handle }: { handle: string }) => join(directory, handle)
  const pending = records === null ? null : await openPendingShards({ directory: records, root, sync })
  const thread = options.thread
    ? await startFileWriterThread(directory, options.thread.onFailure, onSync ?? (() => undefined))
    : null
  const variantRows = options.thread
    ? await startVariantThread(
        directory,
        options.thread.onFailure,
        options.thread.onVariantDamage ?? (() => undefined),
      )
    : openDirectVariants(directory)
  const readers = options.thread ? createFileReaders(options.thread.onFailure) : null
  const variants = createDiskVariants({
    root: join(directory, 'variants'),
    temporary,
    files,
    database: variantRows,
    readers,
    inlineSize: options.inlineSize ?? 0,
  })
  const commitFile = createFileCommitter({ shards, files, sync })

  const recording = new Set<Promise<void>>()
  async function recordPending(id: MediaId): Promise<void> {
    if (!pending) return
    const recorded = pending.add(id)
    recording.add(recorded)
    try {
      await recorded
    } catch (error) {
      throw asStorageFault(error)
    } finally {
      recording.delete(recorded)
    }
  }

  /** In the thread if there is one: with two writers, one could rely on a shard whose sync failed in the other. */
  async function commitReceivedFile(from: string, id: MediaId): Promise<void> {
    if (thread) return thread.commit(id, from)
    try {
      await commitFile(from, id)
    } catch (error) {
      throw asStorageFault(error)
    }
  }

  return {
    partialUploads: createDiskPartialUploads({ directory: uploads, shards, files, sync }),
    variants,

    async receive(source, limit) {
      const handle = join('tmp', randomUUID())
      return { handle, ...(await receiveFile(files, received({ handle }), source, limit)) }
    },

    peek: (blob) => openAsBlob(received(blob)),
    pathOf: received,

    async commit(blob, id) {
      await recordPending(id)
      await commitReceivedFile(received(blob), id)
    },

    // The file may have been removed by a commit that failed.
    discard: (blob) => unlinkIfThere(files, received(blob)),

    async open(id: MediaId, wholeUpTo = 0) {
      if (readers) return readers.open({ root, shard: shardOf(id), name: id, hasIdentity: true, wholeUpTo })
      const shard = shards.directory(id)
      const opened = await openStoredFile(join(shard, id), () => shards.exists(shard))
      if (opened === null) shards.requireIdentity()
      return opened
    },

    async remove(id) {
      const shard = shards.directory(id)
      if (await shards.exists(shard)) {
        await unlinkIfThere(files, join(shard, id))
        // Also if there was no file: the process that unlinked it may have ended before its sync.
        await sync(shard)
      }
      pending?.delete(id)
      await variants.remove(id)
    },

    isReachable() {
      try {
        shards.requireIdentity()
        return true
      } catch {
        return false
      }
    },

    markCommitted(ids) {
      for (const id of ids) pending?.delete(id)
    },
    orphanCandidates: async () => (await pending?.orphanCandidates()) ?? [],
    clearOrphanCandidates: () => pending?.clearOrphanCandidates(),

    async recover() {
      const names = await readdir(temporary)
      for (const name of names) await rm(join(temporary, name), { recursive: true, force: true })
      return names.length
    },

    async close() {
      await Promise.allSettled(recording)
      // The commits that waited for their records are sent to the thread in this tick.
      await new Promise(setImmediate)
      await thread?.close()
      await readers?.close()
      await variantRows.close()
      pending?.close()
    },
  }
}

/** Files are renamed between these directories. */
function requireOneDisk(root: string, ...others: readonly string[]): void {
  const { dev } = statSync(root)
  for (const other of others)
    if (statSync(other).dev !== dev)
      throw new ForeignEntry(
        `${root} and ${other} are on two file systems, between which files cannot be renamed. Mount the disk of the bytes at ${dirname(root)}; catalog.db there may be a link to another disk.`,
      )
}

async function ensureOwnDirectory(directory: string, name: string, files: Files): Promise<string> {
  const path = join(directory, name)
  try {
    await files.mkdir(path, 0o700)
  } catch (error) {
    if (errorCode(error) !== 'EEXIST') throw error
  }
  if (entryTypeAt(files, path) !== 'directory')
    throw new ForeignEntry(
      `${path} must be a directory of its own, not a link: the service cannot keep ${name} safe otherwise`,
    )
  return path
}
