import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { errorCode } from '../../core/error-code.ts'
import { isMediaId, type MediaId } from '../../core/media-id.ts'
import type { DirectorySync } from './directory-sync.ts'
import type { Files } from './files.ts'

/**
 * Records the files that may be committed without a row, as empty files `pending/<id>`. After a crash, a start compares
 * only these with the rows.
 */
export interface Intents {
  /** Resolves when the intent is durable. Call it before the file is renamed to its id. Concurrent calls share a sync. */
  add(id: MediaId): Promise<void>
  /** Call it when the row of this id is committed or its file is removed. */
  delete(id: MediaId): void
  /** The ids of an earlier process. */
  orphanCandidates(): Promise<MediaId[]>
  /** Removes the intents of the earlier process. */
  clearOrphanCandidates(): void
  /** Resolves when no intent is being removed. */
  settled(): Promise<void>
}

export async function openIntents(parts: {
  /** The directory `pending/`. */
  readonly directory: string
  /** The directory of the shards. */
  readonly root: string
  readonly files: Pick<Files, 'create' | 'unlink'>
  readonly sync: DirectorySync
}): Promise<Intents> {
  const { directory, root, files, sync } = parts
  const leftovers = new Set(await readdir(directory))
  /** Of this process. */
  const recorded = new Set<MediaId>()
  const removals = new Set<Promise<void>>()

  /** An intent that cannot be removed costs the next start one look-up. */
  function remove(name: string): Promise<void> {
    const removal = files
      .unlink(join(directory, name))
      .catch(() => undefined)
      .finally(() => removals.delete(removal))
    removals.add(removal)
    return removal
  }

  async function create(id: MediaId): Promise<void> {
    try {
      const file = await files.create(join(directory, id))
      await file.close()
    } catch (error) {
      // An earlier attempt to commit the same upload has failed.
      if (errorCode(error) !== 'EEXIST') throw error
    }
  }

  /** Versions before 0.1.0 recorded the directories of files, not the files. */
  async function idsOf(name: string): Promise<MediaId[]> {
    if (isMediaId(name)) return [name]
    const names = await readdir(join(root, name)).catch((error: unknown) => {
      if (['ENOENT', 'ENOTDIR'].includes(errorCode(error) ?? '')) return []
      throw error
    })
    return names.flatMap((one) => (isMediaId(one) ? [one] : []))
  }

  return {
    async add(id) {
      leftovers.delete(id)
      await create(id)
      recorded.add(id)
      try {
        await sync(directory)
      } catch (error) {
        // After a failed sync, a later one could succeed without this entry. Creating the entry again makes sync write it.
        recorded.delete(id)
        await remove(id)
        throw error
      }
    },

    delete(id) {
      if (recorded.delete(id)) void remove(id)
    },

    async orphanCandidates() {
      const ids: MediaId[] = []
      for (const name of leftovers) ids.push(...(await idsOf(name)))
      return ids
    },

    clearOrphanCandidates() {
      for (const name of leftovers) void remove(name)
      leftovers.clear()
    },

    async settled() {
      await Promise.all(removals)
    },
  }
}
