import type { ComponentChildren } from 'preact'
import { useLayoutEffect, useRef } from 'preact/hooks'

interface ModalProps {
  readonly labelledBy?: string
  readonly label?: string
  readonly class: string
  /** Escape was pressed, or the browser's own way to go back. */
  readonly onCancel: () => void
  readonly children: ComponentChildren
}

/** A native modal dialog: the browser keeps the focus inside, and gives it back at the end. */
export function Modal({ labelledBy, label, class: name, onCancel, children }: ModalProps) {
  const ref = useRef<HTMLDialogElement>(null)
  useLayoutEffect(() => {
    const dialog = ref.current
    dialog?.showModal()
    return () => dialog?.close()
  }, [])
  return (
    <dialog
      ref={ref}
      class={name}
      aria-labelledby={labelledBy}
      aria-label={label}
      onCancel={(event) => {
        // Of file inputs and dialogs inside, the same event arrives here.
        if (event.target !== event.currentTarget) return
        event.preventDefault()
        onCancel()
      }}
    >
      {children}
    </dialog>
  )
}
