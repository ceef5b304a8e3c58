import { closeSync, constants, openSync, unlinkSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { errorCode } from '../../core/error-code.ts'
import { isMediaId, type MediaId, shardOf } from '../../core/media-id.ts'
import type { DirectorySync } from './directory-sync.ts'

/**
 * Records the shards that may contain files without committed rows, as empty files `pending/<shard>`. After a crash, a
 * start compares only these shards with the rows.
 */
export interface PendingShards {
  /** Resolves when the shard of this id is recorded durably. Call it before a file is renamed into the shard. */
  add(id: MediaId): Promise<void>
  /** Call it when the row of this id is committed or its file is removed. */
  delete(id: MediaId): void
  /** Ids of all files in the shards that an earlier process recorded. */
  orphanCandidates(): Promise<MediaId[]>
  /** Removes the earlier process's records. */
  clearOrphanCandidates(): void
  close(): void
}

interface Entry {
  readonly ids: Set<MediaId>
  readonly recorded: Promise<void>
  removal: NodeJS.Timeout | null
}

/** Milliseconds until an unused record is removed. Ids of one second share a shard, so the next upload often reuses it. */
const lifetime = 2_000

const { O_WRONLY, O_CREAT, O_NOFOLLOW } = constants

export async function openPendingShards(parts: {
  /** The directory `pending/`. */
  readonly directory: string
  /** The directory of the shards. */
  readonly root: string
  readonly sync: DirectorySync
}): Promise<PendingShards> {
  const { directory, root, sync } = parts
  const entries = new Map<string, Entry>()
  const leftovers = await readdir(directory)

  const record = async (shard: string): Promise<void> => {
    closeSync(openSync(join(directory, shard), O_WRONLY | O_CREAT | O_NOFOLLOW, 0o600))
    try {
      await sync(directory)
    } catch (error) {
      // After a failed sync, a later one could succeed without this entry. Creating the entry again makes sync write it.
      remove(shard)
      throw error
    }
  }

  function remove(shard: string): void {
    try {
      unlinkSync(join(directory, shard))
    } catch (error) {
      // A record that cannot be removed costs the next start the check of one shard.
      if (errorCode(error) === null) throw error
    }
  }

  function removeUnused(shard: string): void {
    const entry = entries.get(shard)
    if (!entry || entry.ids.size > 0) return
    entries.delete(shard)
    remove(shard)
  }

  return {
    async add(id) {
      const shard = shardOf(id)
      let entry = entries.get(shard)
      if (!entry) {
        entry = { ids: new Set(), recorded: record(shard), removal: null }
        entries.set(shard, entry)
      }
      entry.ids.add(id)
      if (entry.removal) clearTimeout(entry.removal)
      entry.removal = null
      try {
        await entry.recorded
      } catch (error) {
        if (entries.get(shard) === entry) entries.delete(shard)
        throw error
      }
    },

    delete(id) {
      const shard = shardOf(id)
      const entry = entries.get(shard)
      if (!entry?.ids.delete(id) || entry.ids.size > 0) return
      entry.removal = setTimeout(() => removeUnused(shard), lifetime).unref()
    },

    async orphanCandidates() {
      const ids: MediaId[] = []
      for (const shard of leftovers) {
        const names = await readdir(join(root, shard)).catch((error: unknown) => {
          if (errorCode(error) === 'ENOENT') return []
          throw error
        })
        for (const name of names) if (isMediaId(name)) ids.push(name)
      }
      return ids
    },

    clearOrphanCandidates() {
      for (const shard of leftovers.splice(0)) if (!entries.has(shard)) remove(shard)
    },

    close() {
      for (const [shard, { removal }] of entries) {
        if (removal) clearTimeout(removal)
        removeUnused(shard)
      }
    },
  }
}
