import { existsSync, lstatSync, readdirSync, readFileSync } from 'node:fs'
import { rename, rm } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { errorCode, Fault } from '../../../core/faults.ts'
import { type ItemId, shardOf } from '../../../core/ids.ts'
import { createDirectories, createFile, replaceFile, syncPath } from '../../durable-files.ts'
import type { BlobsDirectory } from '../blobs.ts'
import { type DirectorySync, entryTypeAt, type Files, ForeignEntry, syncDirectoryNow } from './files.ts'
import { requireOwnDirectory } from './stored-files.ts'

/** The file in `blobs/` that identifies the store. It is missing where the disk is not mounted, and differs on another disk. */
export const identityName = '.identity'
/** The file in `blobs/` for BlobsDirectory.writeAnnounced. */
const announcedName = '.announced'

/** The files in `blobs/` that are no directories of blobs. */
export const ownNames: ReadonlySet<string> = new Set([identityName, announcedName, `${announcedName}.new`])

export function openDiskBlobsDirectory(dataDirectory: string): BlobsDirectory {
  const path = join(resolve(dataDirectory), 'blobs')
  const file = join(path, identityName)
  const announced = join(path, announcedName)
  return {
    path,
    isShared: false,
    advice: {
      place: 'the directory',
      catalog: 'set MEDIABUCKET_DATA to another directory',
      missing: 'perhaps its disk is not mounted',
      cure: 'Mount it there',
      identify: (identity) =>
        `Mount the right disk there, then try again. Several servers with one database need an S3 store (MEDIABUCKET_BLOBS_URL). Only if the files are in this directory, write ${identity} into ${file}.`,
    },
    readIdentity: async () => unlessMissing(() => readFileSync(file, 'utf8').trim() || null, null),
    async writeIdentity(identity) {
      createDirectories(path)
      requireOwnDirectory(path)
      replaceFile(file, `${identity}\n`)
      syncPath(dirname(path))
    },
    readAnnounced: async () => unlessMissing(() => readFileSync(announced, 'utf8'), null),
    async writeAnnounced(text) {
      // Where the disk is not mounted, nothing is stored.
      if (!existsSync(file)) return
      await rm(`${announced}.new`, { force: true })
      await using opened = await createFile(`${announced}.new`)
      await opened.writeFile(text)
      await rename(`${announced}.new`, announced)
    },
    has: async (id) => lstatSync(join(path, shardOf(id), id), { throwIfNoEntry: false }) !== undefined,
    isEmpty: async () => unlessMissing(() => readdirSync(path).every((name) => name.startsWith('.')), true),
  }
}

function unlessMissing<T>(read: () => T, otherwise: T): T {
  try {
    return read()
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return otherwise
    throw error
  }
}

/** The directories of the blobs, named by the first two characters of the ids in them. */
export interface Shards {
  directory(id: ItemId): string
  /** Throws ForeignEntry if it, or the root, is not a directory (docs/interface.md B8). Throws if the root is missing. */
  exists(directory: string): Promise<boolean>
  /** Throws Fault `storage-unavailable` if the root does not belong to the catalog (docs/interface.md S9). */
  requireIdentity(): void
  /** Creates the directory if it is missing; its entry in the root is durable when it resolves. */
  ensure(directory: string): Promise<void>
}

/** Syncs the root; after that, existing directories count as durable. Throws if the sync fails. */
export function openShards(
  root: string,
  files: Files,
  sync: DirectorySync,
  /** True in a server, which checks the identity of the root when it starts. */
  hasIdentity = false,
): Shards {
  function requireIdentity(): void {
    if (hasIdentity && entryTypeAt(files, join(root, identityName)) === 'nothing')
      throw new Fault('storage-unavailable', 'The directory of the bytes cannot be reached.')
  }

  syncDirectoryNow(files, root)
  const durable = new Map<string, Promise<void>>()
  for (const entry of readdirSync(root, { withFileTypes: true }))
    if (entry.isDirectory()) durable.set(join(root, entry.name), Promise.resolve())

  async function exists(directory: string): Promise<boolean> {
    const [above, here] = [entryTypeAt(files, root), entryTypeAt(files, directory)]
    // Check the identity first: if the disk is not mounted, items must not appear unknown (docs/interface.md B9).
    if (above !== 'directory' || here === 'nothing') requireIdentity()
    if (above === 'nothing') throw new Error('the root of the blobs is missing')
    if (above !== 'directory') throw new ForeignEntry('the root of the blobs is not a directory')
    if (here === 'nothing') return false
    if (here !== 'directory') throw new ForeignEntry(`${directory} is not a directory`)
    return true
  }

  async function make(directory: string): Promise<void> {
    try {
      await files.mkdir(directory, 0o700)
    } catch (error) {
      if (errorCode(error) !== 'EEXIST') throw error
    }
    try {
      await sync(root)
    } catch (error) {
      // After a failed sync, a later one could succeed without this entry. Creating the entry again makes sync write it.
      await files.rmdir(directory).catch(() => undefined)
      throw error
    }
  }

  return {
    directory: (id) => join(root, shardOf(id)),
    exists,
    requireIdentity,
    async ensure(directory) {
      requireIdentity()
      if (!(await exists(directory))) durable.delete(directory)
      let made = durable.get(directory)
      if (made === undefined) {
        made = make(directory)
        durable.set(directory, made)
        made.catch(() => durable.delete(directory))
      }
      await made
    },
  }
}

/** Renames a synced file to its place under a new id; durable when it resolves. */
export type CommitFile = (from: string, id: ItemId) => Promise<void>

export function createFileCommitter(parts: {
  readonly shards: Shards
  readonly files: Files
  readonly sync: DirectorySync
}): CommitFile {
  const { shards, files, sync } = parts
  return async (from, id) => {
    const shard = shards.directory(id)
    const path = join(shard, id)
    await shards.ensure(shard)
    // Ids are never reused, so no other commit can create this file between the check and the rename.
    if (entryTypeAt(files, path) !== 'nothing') throw new ForeignEntry(`${path} exists already`)
    await files.rename(from, path)
    try {
      await sync(shard)
      // If the disk was unmounted during the rename, the directory is on another disk.
      shards.requireIdentity()
    } catch (error) {
      await files.unlink(path).catch(() => undefined)
      throw error
    }
  }
}
