/** Milliseconds between two looks while the page is visible. An unchanged listing costs the service a 304. */
const interval = 10_000

/** Looks that follow each other faster, as when a window is switched back and forth, are left out. Milliseconds. */
const shortest = 1000

/**
 * Calls `look` at once when the page becomes visible or gets the focus, and then from time to time while it is visible;
 * never while it is hidden or the browser is offline. Returns what ends it.
 */
export function refreshWhileVisible(look: () => Promise<unknown>): () => void {
  let timer: ReturnType<typeof setTimeout> | undefined
  let last = Date.now()
  let closed = false

  const mayLook = () => !closed && document.visibilityState === 'visible' && navigator.onLine

  function wait(): void {
    clearTimeout(timer)
    if (mayLook()) timer = setTimeout(lookNow, interval)
  }

  async function lookNow(): Promise<void> {
    clearTimeout(timer)
    if (!mayLook()) return
    last = Date.now()
    await look()
    wait()
  }

  const wake = () => {
    if (mayLook() && Date.now() - last >= shortest) void lookNow()
    else wait()
  }
  const causes = [
    [document, 'visibilitychange'],
    [window, 'focus'],
    [window, 'online'],
    [window, 'pageshow'],
  ] as const
  for (const [target, cause] of causes) target.addEventListener(cause, wake)
  wait()
  return () => {
    closed = true
    clearTimeout(timer)
    for (const [target, cause] of causes) target.removeEventListener(cause, wake)
  }
}
