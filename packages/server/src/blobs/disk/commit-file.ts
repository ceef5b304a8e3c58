import { join } from 'node:path'
import type { ItemId } from '../../core/media-id.ts'
import type { DirectorySync } from './directory-sync.ts'
import { entryTypeAt, ForeignEntry } from './entry-type.ts'
import type { Files } from './files.ts'
import type { Shards } from './shards.ts'

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
