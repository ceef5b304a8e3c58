import type { ComponentChildren } from 'preact'
import { useLayoutEffect, useRef } from 'preact/hooks'

interface ModalProps {
  readonly labelledBy?: string
  readonly label?: string
  readonly class: string
  /** Called for Escape and for the browser's own close gesture. */
  readonly onCancel: () => void
  readonly children: ComponentChildren
}

/** A native modal dialog: the browser traps the focus and restores it when the dialog closes. */
export function Modal({ labelledBy, label, class: name, onCancel, children }: ModalProps) {
  const ref = useRef<HTMLDialogElement>(null)
  useLayoutEffect(() => {
    const dialog = ref.current
    const { clientWidth, classList } = document.documentElement
    classList.toggle('with-scrollbar', innerWidth > clientWidth)
    dialog?.showModal()
    return () => {
      dialog?.close()
      setTimeout(restoreFocus)
    }
  }, [])
  return (
    <dialog
      ref={ref}
      class={name}
      aria-labelledby={labelledBy}
      aria-label={label}
      onCancel={(event) => {
        // Cancel events of file inputs and nested dialogs bubble.
        if (event.target !== event.currentTarget) return
        event.preventDefault()
        onCancel()
      }}
    >
      {children}
    </dialog>
  )
}

/** Focuses the open dialog or the page if the element that had the focus no longer exists, such as a deleted file. */
export function restoreFocus(): void {
  if (document.activeElement !== document.body) return
  const dialogs = document.querySelectorAll<HTMLElement>('dialog[open] button')
  const target = dialogs[0] ?? document.querySelector<HTMLElement>('main')
  // The place on the page stays as it is: the focus is not visible on `main`.
  target?.focus({ preventScroll: true })
}
