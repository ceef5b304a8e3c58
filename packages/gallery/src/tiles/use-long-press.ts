import { useRef } from 'preact/hooks'

/** Milliseconds. */
const duration = 500
/** A finger that moves farther scrolls. Pixels. */
const tolerance = 10

/**
 * Handlers that call `onPress` when a finger stays on an element. The click that follows is ignored on everything in the element: what is below
 * the finger may be another control then, such as the box that selects a file.
 */
export function useLongPress(onPress: () => void) {
  const timer = useRef<ReturnType<typeof setTimeout> | null>(null)
  const start = useRef({ x: 0, y: 0 })
  const pressed = useRef(false)
  const cancel = () => {
    if (timer.current !== null) clearTimeout(timer.current)
    timer.current = null
  }
  const press = () => {
    cancel()
    pressed.current = true
    onPress()
  }
  return {
    onPointerDown(event: PointerEvent) {
      cancel()
      pressed.current = false
      if (event.pointerType !== 'touch') return
      start.current = { x: event.clientX, y: event.clientY }
      timer.current = setTimeout(press, duration)
    },
    onPointerMove({ clientX, clientY }: PointerEvent) {
      const { x, y } = start.current
      if (Math.hypot(clientX - x, clientY - y) > tolerance) cancel()
    },
    onPointerUp: cancel,
    onPointerCancel: cancel,
    onContextMenu(event: MouseEvent) {
      // The browser opens its menu for the same gesture, and may do so earlier.
      if (timer.current !== null) press()
      if (pressed.current) event.preventDefault()
    },
    onClickCapture(event: MouseEvent) {
      // A click of a keyboard or a screen reader has no detail.
      if (!pressed.current || event.detail === 0) return
      pressed.current = false
      event.preventDefault()
      event.stopPropagation()
    },
  }
}
