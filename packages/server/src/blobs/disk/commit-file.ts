import { join } from 'node:path'
import type { MediaId } from '../../core/media-id.ts'
import type { DirectorySync } from './directory-sync.ts'
import { entryTypeAt, ForeignEntry } from './entry-type.ts'
import type { WriterFiles } from './files.ts'
import type { Shards } from './shards.ts'

/** Puts a synced file in place under an id that was never used before, durable when it resolves. */
export type CommitFile = (from: string, id: MediaId) => Promise<void>

export function createFileCommitter(parts: {
  readonly shards: Shards
  readonly files: WriterFiles
  readonly sync: DirectorySync
}): CommitFile {
  const { shards, files, sync } = parts
  return async (from, id) => {
    const shard = shards.directory(id)
    const path = join(shard, id)
    await shards.ensure(shard)
    // Ids are never used twice, so nothing but a mistake puts anything here between the look and the rename.
    if (entryTypeAt(files, path) !== 'nothing') throw new ForeignEntry(`${path} stands already`)
    await files.rename(from, path)
    try {
      await sync(shard)
      // The disk may have been unmounted during the rename; the directory is then on another disk.
      shards.requireIdentity()
    } catch (error) {
      await files.unlink(path).catch(() => undefined)
      throw error
    }
  }
}
