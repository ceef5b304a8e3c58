import type { Client } from '@mediabucket/client'
import type { Connection } from './connection.ts'

/** Notices when the bucket changed. An unchanged bucket costs one conditional request (docs/interface.md, L16). */
export interface Changes {
  /**
   * Calls `show` if the bucket changed since it last resolved to true. Resolves to whether the page shows the bucket as it is, and to
   * `shown` if it did not before.
   */
  show(show: () => Promise<boolean>): Promise<'same' | 'shown' | 'failed'>
}

export function createChanges(client: Client, connection: Connection): Changes {
  let etag: string | null = null
  return {
    async show(show) {
      try {
        const changed = await connection.watch(() => client.listPageUnless(etag, 1))
        if (changed === null) return 'same'
        if (!(await show())) return 'failed'
        etag = changed.etag
        return 'shown'
      } catch {
        // `watch` has handled lost connections and invalid tokens.
        return 'failed'
      }
    },
  }
}

/** Between two refreshes, if the changes are not followed. An unchanged listing costs the server a 304. Milliseconds. */
const interval = 10_000

/** From the opening of the page to the first refresh, after which the changes are followed. Milliseconds. */
const firstDelay = 2_000

/** A window that is switched back and forth, and many changes, cause no refresh sooner than this after the last. Milliseconds. */
const minInterval = 1_000

/** The feed responds more often than this, unless a proxy holds the requests back that wait. Milliseconds. */
const longestSilence = 45_000

interface RefreshParts {
  readonly client: Pick<Client, 'latestCursor' | 'changes'>
  readonly connection: Pick<Connection, 'watch'>
  /** Resolves to false if the page may not show the bucket as it is. */
  readonly refresh: () => Promise<boolean>
}

/**
 * Calls `refresh` when the page becomes visible or gets the focus, and then after each change in the feed of the bucket; at an interval if the
 * feed does not respond. Never while the page is hidden or the browser is offline (docs/interface.md, G8). Returns a function that stops it.
 */
export function refreshWhileVisible({ client, connection, refresh }: RefreshParts): () => void {
  let timer: ReturnType<typeof setTimeout> | undefined
  let following: AbortController | null = null
  let respondedAt = Number.NEGATIVE_INFINITY
  let lastAt = Date.now()
  let isRefreshing = false
  /** Whether the refresh in progress may have begun before the last change. */
  let isOutdated = false
  let stopped = false

  const canRefresh = () => !stopped && document.visibilityState === 'visible' && navigator.onLine
  const isFollowing = () => following !== null && Date.now() - respondedAt < longestSilence

  function schedule(delay: number): void {
    clearTimeout(timer)
    if (canRefresh()) timer = setTimeout(refreshNow, delay)
  }

  // The clock may have been set back.
  const untilNext = () => Math.min(minInterval, Math.max(0, lastAt + minInterval - Date.now()))

  async function refreshOnce(): Promise<void> {
    clearTimeout(timer)
    if (isRefreshing) {
      isOutdated = true
      return
    }
    isRefreshing = true
    isOutdated = false
    lastAt = Date.now()
    const isCurrent = await refresh().finally(() => {
      isRefreshing = false
    })
    schedule(isOutdated ? untilNext() : isCurrent && isFollowing() ? longestSilence : interval)
  }

  async function refreshNow(): Promise<void> {
    clearTimeout(timer)
    if (!canRefresh()) return
    if (following === null) await follow()
    else await refreshOnce()
  }

  /** Resolves when the page shows what happened before the cursor; what happens later is followed in the background. */
  async function follow(): Promise<void> {
    const controller = new AbortController()
    following = controller
    const { signal } = controller
    const after = await connection.watch(() => client.latestCursor({ signal })).catch(() => null)
    if (signal.aborted) return
    await refreshOnce()
    if (after === null || signal.aborted) following = null
    else void followAfter(after, controller)
  }

  async function followAfter(after: string, controller: AbortController): Promise<void> {
    const { signal } = controller
    const onResponse = () => {
      respondedAt = Date.now()
    }
    const changes = client.changes({ after, signal, onResponse })
    try {
      for (let next = await changes.next(); !next.done; next = await changes.next()) {
        isOutdated = true
        if (!isRefreshing) schedule(untilNext())
      }
    } catch (error) {
      // `watch` handles invalid tokens.
      if (!signal.aborted) await connection.watch(() => Promise.reject(error)).catch(() => undefined)
    }
    if (following !== controller) return
    following = null
    schedule(interval)
  }

  function unfollow(): void {
    following?.abort()
    following = null
  }

  const onEvent = () => {
    if (!canRefresh()) {
      unfollow()
      clearTimeout(timer)
    } else if (Date.now() - lastAt >= minInterval) void refreshNow()
    else schedule(minInterval)
  }
  const events = [
    [document, 'visibilitychange'],
    [window, 'focus'],
    [window, 'online'],
    [window, 'offline'],
    [window, 'pageshow'],
  ] as const
  for (const [target, name] of events) target.addEventListener(name, onEvent)
  schedule(firstDelay)
  return () => {
    stopped = true
    unfollow()
    clearTimeout(timer)
    for (const [target, name] of events) target.removeEventListener(name, onEvent)
  }
}
