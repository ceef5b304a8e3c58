import type { Webhook } from '@mediabucket/client'
import { ActionDialog } from '../components/action-dialog.tsx'
import { SecretDialog } from '../components/secret-dialog.tsx'
import { strings } from '../strings.ts'
import type { Webhooks } from './webhooks.ts'

interface DialogProps {
  readonly webhooks: Webhooks
  readonly onClose: () => void
  /** Receives a new secret, to be shown once. */
  readonly onSecret: (secret: string) => void
}

/** Changes in one delivery, as the dialog offers them. */
const batches = [1, 10, 100]

/** Asks for the properties of a new webhook. */
export function CreateDialog({ webhooks, onClose, onSecret }: DialogProps) {
  const { kindNames } = strings.webhooks
  async function create(fields: FormData): Promise<void> {
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
  const { secretTitle: title, shownOnce: about, secret: label, copy } = strings.webhooks
  const texts = { title, about, label, copy }
  return <SecretDialog id="new-secret" secret={secret} texts={texts} onClose={onClose} />
}
