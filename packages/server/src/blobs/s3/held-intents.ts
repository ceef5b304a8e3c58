import type { ItemId } from '../../core/media-id.ts'
import type { IntentLog } from '../blobs.ts'

/** Milliseconds between extensions of the deadlines: less than the time between two sweeps (media/deletion/sweep-intents.ts). */
const extensionInterval = 300_000

/** The intents of blobs that are being received, or are received and not committed. Their deadlines are extended. */
export interface HeldIntents {
  /** Durable when it resolves. */
  hold(id: ItemId): Promise<void>
  /** The intents stay recorded, until an item has the id or a sweep takes them. */
  release(ids: readonly ItemId[]): void
  /** Also removes the intents. If that fails, a sweep takes them. Call it when nothing can be stored under the ids any more. */
  clear(ids: readonly ItemId[]): Promise<void>
  close(): void
}

export function createHeldIntents(log: IntentLog): HeldIntents {
  const held = new Set<ItemId>()
  const extend = () => {
    // If it fails, the next extension is soon enough: deadlines are several intervals away.
    if (held.size > 0) log.record([...held]).catch(() => undefined)
  }
  const timer = setInterval(extend, extensionInterval).unref()

  function release(ids: readonly ItemId[]): void {
    for (const id of ids) held.delete(id)
  }

  return {
    async hold(id) {
      await log.record([id])
      held.add(id)
    },
    release,
    async clear(ids) {
      release(ids)
      if (ids.length > 0) await log.clear(ids).catch(() => undefined)
    },
    close: () => clearInterval(timer),
  }
}
