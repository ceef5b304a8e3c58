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
    return () => {
      dialog?.close()
      setTimeout(keepFocus)
    }
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

/** Where the focus came from may be gone with what was done in the dialog; then it goes to what is open, or to the page. */
function keepFocus(): void {
  if (document.activeElement !== document.body) return
  const dialogs = document.querySelectorAll<HTMLElement>('dialog[open] button')
  const place = dialogs[0] ?? document.querySelector<HTMLElement>('main')
  place?.focus()
}
