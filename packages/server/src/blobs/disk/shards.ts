import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { errorCode } from '../../core/error-code.ts'
import { Fault } from '../../core/fault.ts'
import { type ItemId, shardOf } from '../../core/media-id.ts'
import { identityName } from './blobs-directory.ts'
import type { DirectorySync } from './directory-sync.ts'
import { entryTypeAt, ForeignEntry } from './entry-type.ts'
import type { Files } from './files.ts'

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
export async function openShards(
  root: string,
  files: Files,
  sync: DirectorySync,
  /** True in a server, which checks the identity of the root when it starts. */
  hasIdentity = false,
): Promise<Shards> {
  function requireIdentity(): void {
    if (hasIdentity && entryTypeAt(files, join(root, identityName)) === 'nothing')
      throw new Fault('storage-unavailable', 'The directory of the bytes cannot be reached.')
  }

  await sync(root)
  const durable = new Map<string, Promise<void>>()
  for (const entry of await readdir(root, { withFileTypes: true }))
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
