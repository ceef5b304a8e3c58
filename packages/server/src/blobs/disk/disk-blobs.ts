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
import { createEarlierIntents } from './earlier-intents.ts'
import { entryTypeAt, ForeignEntry } from './entry-type.ts'
import { createFileReaders } from './file-readers.ts'
import { asStorageFault, type Files, nodeFiles, unlinkIfThere } from './files.ts'
import { openStoredFile } from './open-stored-file.ts'
import { receiveFile } from './receive-file.ts'
import { openShards } from './shards.ts'
import { type OnSync, timeSyncs } from './sync-timing.ts'
import { createVariantThread, openDirectVariants } from './variant-requests.ts'

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
  /** For a server, which recovers from crashes, and reads files and variants in threads. */
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
  requireOneDisk(root, temporary, uploads)
  await sync(directory)
  const shards = await openShards(root, files, sync, options.thread !== undefined)

  const received = ({ handle }: { handle: string }) => join(directory, handle)
  const variantRows = options.thread
    ? createVariantThread(
        directory,
        options.thread.onFailure,
        options.thread.onVariantDamage ?? (() => undefined),
      )
    : openDirectVariants(directory)
  const readers = options.thread ? createFileReaders(options.thread.onFailure) : null
  const variants = createDiskVariants({
    root: join(directory, 'variants'),
    pictures: root,
    temporary,
    files,
    database: variantRows,
    readers,
    inlineSize: options.inlineSize ?? 0,
  })
  const commitFile = createFileCommitter({ shards, files, sync })

  const commits = new Set<Promise<void>>()
  async function commit(from: string, id: MediaId): Promise<void> {
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
      const committed = commit(received(blob), id)
      commits.add(committed)
      await committed.finally(() => commits.delete(committed))
    },

    // A commit that failed after its rename has removed the file.
    discard: (blob) => unlinkIfThere(files, received(blob)),

    async open(id: MediaId, wholeUpTo = 0) {
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

    async remove(id) {
      const shard = shards.directory(id)
      if (await shards.exists(shard)) {
        await unlinkIfThere(files, join(shard, id))
        // Also if there was no file: the process that unlinked it may have ended before its sync.
        await sync(shard)
      }
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

    ...createEarlierIntents(join(directory, 'pending'), root),

    async recover() {
      const names = await readdir(temporary)
      for (const name of names) await rm(join(temporary, name), { recursive: true, force: true })
      return names.length
    },

    async close() {
      await Promise.allSettled(commits)
      await readers?.close()
      await variantRows.close()
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
