import type { BlobStore, IntentLog } from '../../blobs/blobs.ts'
import type { Catalog } from '../../catalog/catalog.ts'
import type { ItemId } from '../../core/media-id.ts'
import { settleAll } from '../../core/settle-all.ts'

/** Milliseconds from the record of an intent to its deadline. A store extends the deadline while it receives bytes. */
const intentLifetime = 3_600_000

/** Milliseconds between sweeps. Stores extend deadlines more often. */
export const intentSweepInterval = 600_000

/** Intents in one transaction. Those of unfinished uploads are among them, and stay. */
const batchLength = 500

/** Blobs that are removed at the same time. */
const parallelism = 2

/** The intents of a blob store, recorded in the catalog. */
export const intentLog = (
  catalog: Pick<Catalog, 'addIntents' | 'clearIntents'>,
  lifetime = intentLifetime,
): IntentLog => ({
  record: (ids) => catalog.addIntents(ids, lifetime),
  clear: (ids) => catalog.clearIntents(ids),
})

/**
 * Creates the sweep that removes blobs that no item has: those of intents whose deadline has passed. First a transaction reserves the
 * ids permanently, so that a late commit of an upload fails. Then the blobs are removed, then the intents. The sweep takes an
 * intent only if the previous sweep found it expired too: if the clock is set forward, uploads in progress extend their deadlines between
 * the two. It stops at the first error of the catalog. Returns the number of removed intents.
 */
export function createIntentSweep(parts: {
  readonly catalog: Pick<Catalog, 'expiredIntents' | 'retireIntents' | 'clearIntents'>
  readonly blobs: Pick<BlobStore, 'removeInterrupted'>
  /** Receives each id whose blob stays until a later sweep, and the error. */
  readonly onDeletionFailure: (id: ItemId, error: unknown) => void
}): () => Promise<number> {
  const { catalog, blobs, onDeletionFailure } = parts
  let found = new Set<ItemId>()

  return async () => {
    const expired = await catalog.expiredIntents()
    const candidates = expired.filter((id) => found.has(id))
    found = new Set(expired)
    let count = 0
    for (let done = 0; done < candidates.length; done += batchLength) {
      const retired = await catalog.retireIntents(candidates.slice(done, done + batchLength))
      const results = await settleAll(retired, parallelism, (id) => blobs.removeInterrupted(id))
      const removed = retired.filter((id, at) => {
        const result = results[at]
        if (result?.status === 'rejected') onDeletionFailure(id, result.reason)
        return result?.status === 'fulfilled'
      })
      if (removed.length > 0) await catalog.clearIntents(removed)
      count += removed.length
    }
    return count
  }
}
