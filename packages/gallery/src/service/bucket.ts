import type { Bucket, Client } from '@mediabucket/client'
import { type ReadonlySignal, signal } from '@preact/signals'
import type { Connection } from './connection.ts'

/** The size and the limits of the bucket. */
export interface BucketUsage {
  /** Null until it is loaded. */
  readonly bucket: ReadonlySignal<Bucket | null>
  refresh(): Promise<void>
  /** Whether deleted items are moved to the trash; false if that is unknown. Never rejects. */
  hasTrash(): Promise<boolean>
}

export function createBucketUsage(client: Client, connection: Connection): BucketUsage {
  const bucket = signal<Bucket | null>(null)
  async function refresh(): Promise<boolean> {
    try {
      bucket.value = await connection.watch(() => client.bucket())
      return true
    } catch {
      // The header is shown without it; the listing shows errors.
      return false
    }
  }
  connection.onRestored(() => void refresh())
  return {
    bucket,
    async refresh() {
      await refresh()
    },
    hasTrash: async () => (await refresh()) && (bucket.value?.trash_days ?? 0) > 0,
  }
}

/** Notices when the bucket changed. An unchanged bucket costs one conditional request (docs/interface.md, L16). */
export interface Changes {
  /** Calls `show` if the bucket changed since it last resolved to true; resolves to what it resolves to, or to false. */
  show(show: () => Promise<boolean>): Promise<boolean>
}

export function createChanges(client: Client, connection: Connection): Changes {
  let etag: string | null = null
  return {
    async show(show) {
      try {
        const changed = await connection.watch(() => client.listPageUnless(etag, 1))
        if (changed === null || !(await show())) return false
        etag = changed.etag
        return true
      } catch {
        // `watch` has handled lost connections and invalid tokens.
        return false
      }
    },
  }
}

/** Between two refreshes. An unchanged listing costs the server a 304. Milliseconds. */
const interval = 10_000

/** A window that is switched back and forth triggers no refresh sooner than this after the last. Milliseconds. */
const minInterval = 1000

/**
 * Calls `refresh` when the page becomes visible or gets the focus, and then at an interval while it is visible; never while
 * it is hidden or the browser is offline (docs/interface.md, G8). Returns a function that stops it.
 */
export function refreshWhileVisible(refresh: () => Promise<unknown>): () => void {
  let timer: ReturnType<typeof setTimeout> | undefined
  let lastAt = Date.now()
  let stopped = false

  const canRefresh = () => !stopped && document.visibilityState === 'visible' && navigator.onLine

  function schedule(): void {
    clearTimeout(timer)
    if (canRefresh()) timer = setTimeout(refreshNow, interval)
  }

  async function refreshNow(): Promise<void> {
    clearTimeout(timer)
    if (!canRefresh()) return
    lastAt = Date.now()
    await refresh()
    schedule()
  }

  const onEvent = () => {
    if (canRefresh() && Date.now() - lastAt >= minInterval) void refreshNow()
    else schedule()
  }
  const events = [
    [document, 'visibilitychange'],
    [window, 'focus'],
    [window, 'online'],
    [window, 'pageshow'],
  ] as const
  for (const [target, name] of events) target.addEventListener(name, onEvent)
  schedule()
  return () => {
    stopped = true
    clearTimeout(timer)
    for (const [target, name] of events) target.removeEventListener(name, onEvent)
  }
}
