import type { Client, Media } from '@mediabucket/client'
import { type ReadonlySignal, type Signal, signal } from '@preact/signals'
import type { Connection } from '../service/connection.ts'
import { isNotFound } from '../service/errors.ts'

/** The media objects of the items that were shown, each asked for once. */
export interface MediaCache {
  /** Null until it is known. */
  of(id: string): ReadonlySignal<Media | null>
  /** Resolves when it is known, or known not to be had; never rejects. */
  load(id: string): Promise<Media | null>
  /** Asks anew, since it may be deleted by now: whether it is there, null when nobody could tell. Never rejects. */
  ask(id: string): Promise<boolean | null>
  forget(id: string): void
}

/** An item is never changed, so it is kept; but not more of them than this. */
const mostKept = 2000

/** `onGone` hears that an item was deleted elsewhere, and so the page is an old one. */
export function createMediaCache(client: Client, connection: Connection, onGone: () => void): MediaCache {
  const known = new Map<string, Signal<Media | null>>()
  const underWay = new Map<string, Promise<Media | null>>()

  function entry(id: string): Signal<Media | null> {
    const found = known.get(id)
    if (found) return found
    for (const [oldest] of known) {
      if (known.size < mostKept) break
      known.delete(oldest)
    }
    const fresh = signal<Media | null>(null)
    known.set(id, fresh)
    return fresh
  }

  async function ask(id: string): Promise<boolean | null> {
    try {
      entry(id).value = await connection.watch(() => client.describe(id))
      return true
    } catch (error) {
      // The connection and the session have heard of it; the tile goes on without.
      if (!isNotFound(error)) return null
      onGone()
      return false
    }
  }

  async function fetchItem(id: string): Promise<Media | null> {
    await ask(id)
    underWay.delete(id)
    return entry(id).peek()
  }

  return {
    of: entry,
    ask,
    async load(id) {
      const media = entry(id).peek()
      if (media) return media
      const pending = underWay.get(id) ?? fetchItem(id)
      underWay.set(id, pending)
      return await pending
    },
    forget: (id) => void known.delete(id),
  }
}
