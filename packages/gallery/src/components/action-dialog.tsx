import type { ComponentChildren } from 'preact'
import { useId, useState } from 'preact/hooks'
import { errorMessage } from '../service/connection.ts'
import { strings } from '../strings.ts'
import { Modal } from './modal.tsx'

interface ActionDialogProps {
  readonly title: string
  /** Of the button that starts the action. */
  readonly label: string
  readonly danger?: boolean
  readonly onClose: () => void
  /** Why these fields are refused, empty if a field says it; null if they are not refused. */
  readonly check?: (fields: FormData) => string | null
  /** Rejects with an error whose message is shown. */
  readonly act: (fields: FormData) => Promise<void>
  readonly children: ComponentChildren
}

/** A dialog whose form does something, and shows why it failed. */
export function ActionDialog(props: ActionDialogProps) {
  const { title, label, danger = false, onClose, check, act, children } = props
  const id = useId()
  const [busy, setBusy] = useState(false)
  const [error, setError] = useState('')
  async function submit(form: HTMLFormElement): Promise<void> {
    if (busy) return
    const fields = new FormData(form)
    const refusal = check?.(fields) ?? null
    setError(refusal ?? '')
    if (refusal !== null) return
    setBusy(true)
    await act(fields).catch((reason: unknown) => setError(errorMessage(reason)))
    setBusy(false)
  }
  return (
    <Modal class="dialog" labelledBy={id} onCancel={onClose}>
      <form
        class="token-form"
        onSubmit={(event) => {
          event.preventDefault()
          void submit(event.currentTarget)
        }}
      >
        <h2 id={id}>{title}</h2>
        {children}
        <div class="dialog-end">
          <p class="message bad" role="alert">
            {error}
          </p>
          <div class="dialog-actions">
            <button type="button" class="button" onClick={onClose}>
              {strings.cancel}
            </button>
            <button type="submit" class={danger ? 'button danger' : 'button primary'} aria-disabled={busy}>
              {label}
            </button>
          </div>
        </div>
      </form>
    </Modal>
  )
}
