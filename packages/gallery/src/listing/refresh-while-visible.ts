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
