import { UnreadableFile } from '@mediabucket/strip-metadata'
import { Fault } from '../core/faults.ts'
import type { OpenBlob } from '../storage/blobs/blobs.ts'
import type { Catalog } from '../storage/catalog/catalog.ts'
import type { TakenAt, UnreadItem } from '../storage/catalog/items/taken-times.ts'
import type { Item } from '../storage/catalog/records.ts'
import { readTakenOf } from './received-pictures.ts'

/** Items that are listed together. */
const itemsPerBatch = 100

/** Rest after an item: a multiple of the time that it took, so that a pass uses about a tenth of a core, and at least this many milliseconds. */
const restFactor = 9
const leastRest = 10

interface FillParts {
  readonly catalog: Pick<Catalog, 'item' | 'listUnreadTaken' | 'setTaken'>
  /** Fails for an item whose bytes are missing or damaged. */
  readonly openBytes: (item: Item) => Promise<OpenBlob>
  /** Milliseconds since 1970. */
  readonly now: () => number
  readonly rest: (milliseconds: number) => Promise<unknown>
}

/**
 * Returns a pass over the pictures and videos whose upload did not read the time at which they were taken (docs/interface.md M10). It reads one
 * at a time, and each only once, because what was read is recorded. Returns how many times it has found. Throws if an item cannot be read at
 * present: the next pass continues after it, so that it delays no other one.
 */
export function fillTakenOperation({ catalog, openBytes, now, rest }: FillParts) {
  /** The item after which a pass begins; null for the first one. */
  let last: UnreadItem | null = null

  async function read(item: Item): Promise<TakenAt | null> {
    try {
      const opened = await openBytes(item)
      try {
        return await readTakenOf(opened, now())
      } finally {
        await opened.close()
      }
    } catch (error) {
      const isMissing = error instanceof Fault && error.code === 'bytes-missing'
      if (error instanceof UnreadableFile || isMissing) return null
      throw error
    }
  }

  return async function fillTaken(isStopping: () => boolean): Promise<number> {
    let found = 0
    for (;;) {
      const batch = await catalog.listUnreadTaken(last, itemsPerBatch)
      for (const unread of batch) {
        if (isStopping()) return found
        last = unread
        const start = performance.now()
        const item = await catalog.item(unread.id)
        // It may have been deleted.
        if (item === null) continue
        if (await catalog.setTaken(unread.bucketId, unread.id, await read(item))) found += 1
        await rest(Math.max(restFactor * (performance.now() - start), leastRest))
      }
      if (batch.length === 0) {
        last = null
        return found
      }
    }
  }
}
