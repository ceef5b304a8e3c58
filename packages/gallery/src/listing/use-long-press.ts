import { useRef } from 'preact/hooks'

/** Milliseconds. */
const duration = 500
/** A finger that moves farther scrolls. Pixels. */
const tolerance = 10

/** Handlers that call `onPress` when a finger stays on an element. The click that follows is ignored. */
export function useLongPress(onPress: () => void) {
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined)
  const start = useRef({ x: 0, y: 0 })
  const pressed = useRef(false)
  const cancel = () => clearTimeout(timer.current)
  return {
    onPointerDown(event: PointerEvent) {
      pressed.current = false
      if (event.pointerType !== 'touch') return
      start.current = { x: event.clientX, y: event.clientY }
      cancel()
      timer.current = setTimeout(() => {
        pressed.current = true
        onPress()
      }, duration)
    },
    onPointerMove({ clientX, clientY }: PointerEvent) {
      const { x, y } = start.current
      if (Math.hypot(clientX - x, clientY - y) > tolerance) cancel()
    },
    onPointerUp: cancel,
    onPointerCancel: cancel,
    onContextMenu(event: MouseEvent) {
      // The menu of the browser would open for the same gesture.
      if (pressed.current) event.preventDefault()
    },
    onClickCapture(event: MouseEvent) {
      if (!pressed.current) return
      pressed.current = false
      event.preventDefault()
      event.stopPropagation()
    },
  }
}
