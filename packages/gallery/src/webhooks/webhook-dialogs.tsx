import type { Webhook } from '@mediabucket/client'
import { useState } from 'preact/hooks'
import { Modal } from '../components/modal.tsx'
import { SecretDialog } from '../components/secret-dialog.tsx'
import { errorMessage } from '../service/connection.ts'
import { strings } from '../strings.ts'
import type { Webhooks } from './webhooks.ts'

interface DialogProps {
  readonly webhooks: Webhooks
  readonly onClose: () => void
  /** Receives a new secret, to be shown once. */
  readonly onSecret: (secret: string) => void
}

/** A dialog whose form does something, and shows why it failed. */
function ActionDialog(props: {
  readonly title: string
  readonly label: string
  readonly danger?: boolean
  readonly onClose: () => void
  readonly act: (form: HTMLFormElement) => Promise<void>
  readonly children: preact.ComponentChildren
}) {
  const { title, label, danger = false, onClose, act, children } = props
  const [busy, setBusy] = useState(false)
  const [error, setError] = useState('')
  async function submit(form: HTMLFormElement): Promise<void> {
    if (busy) return
    setBusy(true)
    setError('')
    await act(form).catch((reason: unknown) => setError(errorMessage(reason)))
    setBusy(false)
  }
  return (
    <Modal class="dialog" labelledBy="webhook-dialog" onCancel={onClose}>
      <form
        class="token-form"
        onSubmit={(event) => {
          event.preventDefault()
          void submit(event.currentTarget)
        }}
      >
        <h2 id="webhook-dialog">{title}</h2>
        {children}
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
      </form>
    </Modal>
  )
}

/** Changes in one delivery, as the dialog offers them. */
const batches = [1, 10, 100]

/** Asks for the properties of a new webhook. */
export function CreateDialog({ webhooks, onClose, onSecret }: DialogProps) {
  const { kindNames } = strings.webhooks
  async function create(form: HTMLFormElement): Promise<void> {
    const fields = new FormData(form)
    const kinds = fields.getAll('kind').map(String)
    const isAll = kinds.length === Object.keys(kindNames).length
    onSecret(
      await webhooks.create({
        url: `${fields.get('url') ?? ''}`.trim(),
        kinds: isAll ? [] : kinds,
        batch: Number(fields.get('batch')),
      }),
    )
  }
  return (
    <ActionDialog
      title={strings.webhooks.create}
      label={strings.webhooks.create}
      onClose={onClose}
      act={create}
    >
      <label>
        {strings.webhooks.url}
        <input type="url" name="url" maxLength={2048} required autocomplete="off" placeholder="https://" />
      </label>
      <fieldset>
        <legend>{strings.webhooks.kinds}</legend>
        {Object.entries(kindNames).map(([kind, name]) => (
          <label key={kind} class="token-scope">
            <input type="checkbox" name="kind" value={kind} defaultChecked />
            {name}
          </label>
        ))}
      </fieldset>
      <label>
        {strings.webhooks.batch}
        <span class="select">
          <select name="batch">
            {batches.map((batch) => (
              <option key={batch} value={batch}>
                {strings.webhooks.upTo(batch)}
              </option>
            ))}
          </select>
        </span>
      </label>
    </ActionDialog>
  )
}

export function RotateDialog(props: DialogProps & { readonly webhook: Webhook }) {
  const { webhook, webhooks, onClose, onSecret } = props
  return (
    <ActionDialog
      title={strings.webhooks.rotate}
      label={strings.webhooks.rotate}
      onClose={onClose}
      act={async () => onSecret(await webhooks.rotate(webhook.id))}
    >
      <p>{strings.webhooks.rotateAbout}</p>
    </ActionDialog>
  )
}

export function DeleteDialog(props: Omit<DialogProps, 'onSecret'> & { readonly webhook: Webhook }) {
  const { webhook, webhooks, onClose } = props
  return (
    <ActionDialog
      title={strings.webhooks.deleteTitle}
      label={strings.webhooks.delete}
      danger
      onClose={onClose}
      act={async () => {
        await webhooks.remove(webhook.id)
        onClose()
      }}
    >
      <p class="token-name">{webhook.url}</p>
      <p>{strings.webhooks.deleteAbout}</p>
    </ActionDialog>
  )
}

/** Shows a new secret, once. */
export function NewSecretDialog({ secret, onClose }: { secret: string; onClose: () => void }) {
  const { secretTitle: title, shownOnce, secret: label, copy, copied } = strings.webhooks
  const texts = { title, shownOnce, label, copy, copied }
  return <SecretDialog id="new-secret" secret={secret} texts={texts} onClose={onClose} />
}
