import { useEffect, useState } from 'preact/hooks'

/** After so long a list in which nothing is left to do goes by itself. Milliseconds. */
const lifetime = 30_000

/** Runs `leave` some time after `ready`, unless a person points at the element or is in it with the keyboard. */
export function useAutoClose(ready: boolean, leave: () => void) {
  const [hovered, hover] = useState(false)
  const [focused, focus] = useState(false)
  const busy = hovered || focused
  useEffect(() => {
    if (!ready || busy) return
    const timer = setTimeout(leave, lifetime)
    return () => clearTimeout(timer)
  }, [ready, busy, leave])
  return {
    onPointerEnter: () => hover(true),
    onPointerLeave: () => hover(false),
    onFocusIn: () => focus(true),
    onFocusOut: () => focus(false),
  }
}
