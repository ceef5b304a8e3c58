import type { Client, Media } from '@mediabucket/client'
import { type ReadonlySignal, type Signal, signal } from '@preact/signals'
import { type Connection, isNotFound } from './connection.ts'
import { type Addressed, isPrivate } from './urls.ts'

/** The media objects of the items that were shown. Each is loaded once. If the bucket is private, it is loaded again before its URLs expire. */
export interface MediaCache {
  /** Null until it is loaded. */
  get(id: string): ReadonlySignal<Media | null>
  /** Loads the item unless it is cached; resolves with null if that fails. Never rejects. */
  load(id: string): Promise<Media | null>
  /** Returns the item with other signed URLs than these, requested if those of the cache are the same; null if there are none. Never rejects. */
  renew(failed: Addressed): Promise<Media | null>
  /** Requests the item even if it is cached; resolves with whether it exists, null if that is unknown. Never rejects. */
  check(id: string): Promise<boolean | null>
  /** Caches an item of a list, unless it was edited on this page: the list may be older. */
  put(media: Media): void
  /** Caches an item after an edit. Responses to earlier requests are ignored from now on. */
  putEdited(media: Media): void
  forget(id: string): void
}

/** Media objects. */
const maxCached = 2000

/** Milliseconds for which signed URLs are used. They are valid for 15 minutes or more (docs/interface.md H10). */
const signedTime = 5 * 60_000

/** `onDeleted` is called when an item was deleted by others, so that the page shown is out of date. */
export function createMediaCache(client: Client, connection: Connection, onDeleted: () => void): MediaCache {
  const cached = new Map<string, Signal<Media | null>>()
  const pending = new Map<string, Promise<Media | null>>()
  /** When the signed URLs of items were loaded. */
  const signedAt = new Map<string, number>()
  const editedAt = new Map<string, number>()

  /** Whether the response may have the state before an edit. */
  const isOutdated = (id: string, requestedAt: number): boolean =>
    requestedAt <= (editedAt.get(id) ?? Number.NEGATIVE_INFINITY)

  const isCurrent = (media: Media): boolean =>
    !isPrivate(media) || performance.now() - (signedAt.get(media.id) ?? Number.NEGATIVE_INFINITY) < signedTime

  function store(media: Media): void {
    if (isPrivate(media)) signedAt.set(media.id, performance.now())
    get(media.id).value = media
  }

  function get(id: string): Signal<Media | null> {
    const found = cached.get(id)
    if (found) return found
    for (const [oldest] of cached) {
      if (cached.size < maxCached) break
      cached.delete(oldest)
      signedAt.delete(oldest)
    }
    const created = signal<Media | null>(null)
    cached.set(id, created)
    return created
  }

  async function check(id: string): Promise<boolean | null> {
    const requestedAt = performance.now()
    try {
      const media = await connection.watch(() => client.describe(id, { urls: 'signed' }))
      if (!isOutdated(id, requestedAt)) store(media)
      return true
    } catch (error) {
      // `watch` has handled lost connections and invalid tokens.
      if (!isNotFound(error)) return null
      onDeleted()
      return false
    }
  }

  const currentOf = (id: string): Media | null => {
    const media = get(id).peek()
    return media && isCurrent(media) ? media : null
  }

  async function load(id: string): Promise<Media | null> {
    return currentOf(id) ?? (await reload(id))
  }

  function reload(id: string): Promise<Media | null> {
    const promise = pending.get(id) ?? request(id)
    pending.set(id, promise)
    return promise
  }

  async function request(id: string): Promise<Media | null> {
    await check(id)
    pending.delete(id)
    return get(id).peek()
  }

  async function renew(failed: Addressed): Promise<Media | null> {
    if (!isPrivate(failed)) return null
    const cached = currentOf(failed.id)
    const media = cached === null || cached.url === failed.url ? await reload(failed.id) : cached
    return media === null || media.url === failed.url ? null : media
  }

  function put(media: Media): void {
    if (editedAt.has(media.id)) return
    const former = get(media.id).peek()
    // The same URLs as before, so that the browser does not load shown pictures again.
    if (former && isPrivate(former) && isPrivate(media) && isCurrent(former))
      get(media.id).value = { ...media, url: former.url, variants: former.variants }
    else store(media)
  }

  return {
    get,
    check,
    load,
    renew,
    putEdited(media) {
      editedAt.set(media.id, performance.now())
      get(media.id).value = media
    },
    put,
    forget(id) {
      cached.delete(id)
      signedAt.delete(id)
    },
  }
}
