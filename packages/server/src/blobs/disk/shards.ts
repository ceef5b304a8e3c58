import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { errorCode } from '../../core/error-code.ts'
import { Fault } from '../../core/fault.ts'
import { type MediaId, shardOf } from '../../core/media-id.ts'
import { identityName } from './blobs-directory.ts'
import type { DirectorySync } from './directory-sync.ts'
import { entryTypeAt, ForeignEntry } from './entry-type.ts'
import type { WriterFiles } from './files.ts'

/** The directories that hold the blobs, named by the first two characters of their ids. */
export interface Shards {
  directory(id: MediaId): string
  /** False when there is none; throws ForeignEntry when it, or the root, is no real directory (B8). Throws without root. */
  exists(directory: string): Promise<boolean>
  /** Throws Fault `storage-unavailable` where the root is not the directory that belongs to the catalog (S9). */
  requireIdentity(): void
  /** Resolves once the directory exists and its entry in the root would survive a power cut. */
  ensure(directory: string): Promise<void>
}

/** Throws when `root` cannot be synced: what an earlier process left in it is believed from here on. */
export async function openShards(
  root: string,
  files: WriterFiles,
  sync: DirectorySync,
  /** For a server, whose start has made sure that the root has an identity. */
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
    // No foreign entry: with its disk not mounted, no item must look as if it had never been (B9).
    if (above !== 'directory' || here === 'nothing') requireIdentity()
    if (above === 'nothing') throw new Error('the root of the blobs is gone')
    if (above !== 'directory') throw new ForeignEntry('the root of the blobs is not a directory any more')
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
      // A later sync could succeed without writing this entry. An entry that is created again is written again.
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
