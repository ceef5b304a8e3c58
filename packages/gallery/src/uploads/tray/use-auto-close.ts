import { useEffect, useState } from 'preact/hooks'

/** Milliseconds. */
const closeAfter = 30_000

/** Calls `close` some time after `ready`, but not while the pointer or the focus is in the element. Returns its listeners. */
export function useAutoClose(ready: boolean, close: () => void) {
  const [hovered, setHovered] = useState(false)
  const [focused, setFocused] = useState(false)
  const inUse = hovered || focused
  useEffect(() => {
    if (!ready || inUse) return
    const timer = setTimeout(close, closeAfter)
    return () => clearTimeout(timer)
  }, [ready, inUse, close])
  return {
    onPointerEnter: () => setHovered(true),
    onPointerLeave: () => setHovered(false),
    onFocusIn: () => setFocused(true),
    onFocusOut: () => setFocused(false),
  }
}
