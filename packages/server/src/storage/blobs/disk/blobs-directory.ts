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

export class DiskBlobsDirectory implements BlobsDirectory {
  readonly path: string
  readonly isShared = false
  readonly advice: BlobsDirectory['advice']
  readonly #identity: string
  readonly #announced: string

  constructor(dataDirectory: string) {
    this.path = join(resolve(dataDirectory), 'blobs')
    const file = join(this.path, identityName)
    this.#identity = file
    this.#announced = join(this.path, announcedName)
    this.advice = {
      place: 'the directory',
      catalog: 'set MEDIABUCKET_DATA to another directory',
      missing: 'perhaps its disk is not mounted',
      cure: 'Mount it there',
      identify: (identity) =>
        `Mount the right disk there, then try again. Several servers with one database need an S3 store (MEDIABUCKET_BLOBS_URL). Only if the files are in this directory, write ${identity} into ${file}.`,
    }
  }

  async readIdentity(): Promise<string | null> {
    return unlessMissing(() => readFileSync(this.#identity, 'utf8').trim() || null, null)
  }

  async writeIdentity(identity: string): Promise<void> {
    createDirectories(this.path)
    requireOwnDirectory(this.path)
    replaceFile(this.#identity, `${identity}\n`)
    syncPath(dirname(this.path))
  }

  async readAnnounced(): Promise<string | null> {
    return unlessMissing(() => readFileSync(this.#announced, 'utf8'), null)
  }

  async writeAnnounced(text: string): Promise<void> {
    // Where the disk is not mounted, nothing is stored.
    if (!existsSync(this.#identity)) return
    const path = `${this.#announced}.new`
    await rm(path, { force: true })
    await using opened = await createFile(path)
    await opened.writeFile(text)
    await rename(path, this.#announced)
  }

  async has(id: ItemId): Promise<boolean> {
    return lstatSync(join(this.path, shardOf(id), id), { throwIfNoEntry: false }) !== undefined
  }

  async isEmpty(): Promise<boolean> {
    return unlessMissing(() => readdirSync(this.path).every((name) => name.startsWith('.')), true)
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
export class Shards {
  readonly #parts: ShardParts
  /** The directories whose entries in the root are durable, or about to be. */
  readonly #durable = new Map<string, Promise<void>>()

  /** Syncs the root; after that, existing directories count as durable. Throws if the sync fails. */
  constructor(parts: ShardParts) {
    this.#parts = parts
    const { root, files } = parts
    syncDirectoryNow(files, root)
    for (const entry of readdirSync(root, { withFileTypes: true }))
      if (entry.isDirectory()) this.#durable.set(join(root, entry.name), Promise.resolve())
  }

  directory(id: ItemId): string {
    return join(this.#parts.root, shardOf(id))
  }

  /** Throws Fault `storage-unavailable` if the root does not belong to the catalog (docs/interface.md S9). */
  requireIdentity(): void {
    const { root, files, hasIdentity } = this.#parts
    if (hasIdentity && entryTypeAt(files, join(root, identityName)) === 'nothing')
      throw new Fault('storage-unavailable', 'The directory of the bytes cannot be reached.')
  }

  /** Throws ForeignEntry if it, or the root, is not a directory (docs/interface.md B8). Throws if the root is missing. */
  async exists(directory: string): Promise<boolean> {
    const { root, files } = this.#parts
    const [above, here] = [entryTypeAt(files, root), entryTypeAt(files, directory)]
    // Check the identity first: if the disk is not mounted, items must not appear unknown (docs/interface.md B9).
    if (above !== 'directory' || here === 'nothing') this.requireIdentity()
    if (above === 'nothing') throw new Error('the root of the blobs is missing')
    if (above !== 'directory') throw new ForeignEntry('the root of the blobs is not a directory')
    if (here === 'nothing') return false
    if (here !== 'directory') throw new ForeignEntry(`${directory} is not a directory`)
    return true
  }

  /** Creates the directory if it is missing; its entry in the root is durable when it resolves. */
  async ensure(directory: string): Promise<void> {
    this.requireIdentity()
    if (!(await this.exists(directory))) this.#durable.delete(directory)
    let made = this.#durable.get(directory)
    if (made === undefined) {
      made = this.#make(directory)
      this.#durable.set(directory, made)
      made.catch(() => this.#durable.delete(directory))
    }
    await made
  }

  async #make(directory: string): Promise<void> {
    const { root, files, sync } = this.#parts
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
}

interface ShardParts {
  readonly root: string
  readonly files: Files
  readonly sync: DirectorySync
  /** True in a server, which checks the identity of the root when it starts. */
  readonly hasIdentity: boolean
}

/** Renames a synced file to its place under a new id; durable when it resolves. */
export async function commitFile(
  { shards, files, sync }: { readonly shards: Shards; readonly files: Files; readonly sync: DirectorySync },
  from: string,
  id: ItemId,
): Promise<void> {
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
