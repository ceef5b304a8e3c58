import type { CreatedToken, ManagedToken } from '@mediabucket/client'
import { useEffect, useState } from 'preact/hooks'
import { Modal } from '../components/modal.tsx'
import { SecretDialog } from '../components/secret-dialog.tsx'
import { useGallery } from '../gallery-context.ts'
import { errorMessage } from '../service/connection.ts'
import { serviceUrl } from '../service/urls.ts'
import { strings } from '../strings.ts'
import { shareXConfiguration, type Tokens } from './tokens.ts'

export interface DialogProps {
  readonly tokens: Tokens
  readonly onClose: () => void
  /** Receives a new token, to be shown once. */
  readonly onCreated: (created: CreatedToken) => void
}

const day = 86_400

export const inDays = (days: number): Date | null =>
  days > 0 ? new Date(Date.now() + days * day * 1000) : null

/** Runs the action of a dialog, and shows why it failed. */
export function useAction() {
  const [busy, setBusy] = useState(false)
  const [error, setError] = useState('')
  const run = async (action: () => Promise<void>) => {
    if (busy) return
    setBusy(true)
    setError('')
    try {
      await action()
    } catch (reason) {
      setError(errorMessage(reason))
    }
    setBusy(false)
  }
  return { busy, error, run }
}

export function Actions(props: { busy: boolean; label: string; danger?: boolean; onClose: () => void }) {
  const { busy, label, danger = false, onClose } = props
  return (
    <div class="dialog-actions">
      <button type="button" class="button" onClick={onClose}>
        {strings.cancel}
      </button>
      <button type="submit" class={danger ? 'button danger' : 'button primary'} aria-disabled={busy}>
        {label}
      </button>
    </div>
  )
}

export const ErrorText = ({ text }: { text: string }) => (
  <p class="message bad" role="alert">
    {text}
  </p>
)

export function ExpiryField({ label = strings.tokens.expiry, selected = 90 }) {
  return (
    <label>
      {label}
      <span class="select">
        <select name="days">
          {[7, 30, 90, 365, 0].map((days) => (
            <option key={days} value={days} selected={days === selected}>
              {days === 0 ? strings.tokens.noExpiry : strings.tokens.days(days)}
            </option>
          ))}
        </select>
      </span>
    </label>
  )
}

/** Asks for the properties of a new token. It has at most the scopes of the person's own token. */
export function CreateDialog({ tokens, onClose, onCreated }: DialogProps) {
  const { tokenInfo } = useGallery()
  const { busy, error, run } = useAction()
  const [missing, setMissing] = useState(false)
  async function create(form: HTMLFormElement): Promise<void> {
    const fields = new FormData(form)
    const scopes = fields.getAll('scope').map(String)
    setMissing(scopes.length === 0)
    if (scopes.length === 0) return
    const name = `${fields.get('name') ?? ''}`.trim()
    onCreated(await tokens.create({ name, scopes, expiresAt: inDays(Number(fields.get('days'))) }))
  }
  return (
    <Modal class="dialog" labelledBy="create-token" onCancel={onClose}>
      <form
        class="token-form"
        onSubmit={(event) => {
          event.preventDefault()
          const form = event.currentTarget
          void run(() => create(form))
        }}
      >
        <h2 id="create-token">{strings.tokens.create}</h2>
        <label>
          {strings.tokens.name}
          <input type="text" name="name" maxLength={200} autocomplete="off" />
        </label>
        <fieldset>
          <legend>{strings.tokens.scopes}</legend>
          {tokenInfo.scopes.map((scope) => (
            <label key={scope} class="token-scope">
              <input type="checkbox" name="scope" value={scope} defaultChecked={scope === 'media:read'} />
              {strings.tokens.scopeNames[scope] ?? scope}
            </label>
          ))}
        </fieldset>
        <ExpiryField />
        <ErrorText text={missing ? strings.tokens.noScope : error} />
        <Actions busy={busy} label={strings.tokens.create} onClose={onClose} />
      </form>
    </Modal>
  )
}

/** Asks how long the replaced token remains valid. */
export function RotateDialog(props: DialogProps & { readonly token: ManagedToken }) {
  const { token, tokens, onClose, onCreated } = props
  const { busy, error, run } = useAction()
  return (
    <Modal class="dialog" labelledBy="rotate-token" onCancel={onClose}>
      <form
        class="token-form"
        onSubmit={(event) => {
          event.preventDefault()
          const fields = new FormData(event.currentTarget)
          const expiresAt = inDays(Number(fields.get('days')))
          void run(async () =>
            onCreated(await tokens.rotate(token.id, Number(fields.get('overlap')), expiresAt)),
          )
        }}
      >
        <h2 id="rotate-token">{strings.tokens.rotateTitle(token.name || token.id)}</h2>
        <p>{strings.tokens.rotateAbout}</p>
        <label>
          {strings.tokens.overlap}
          <span class="select">
            <select name="overlap">
              <option value="0">{strings.tokens.atOnce}</option>
              <option value="3600">{strings.tokens.hour}</option>
              {[1, 7, 30].map((days) => (
                <option key={days} value={days * day} selected={days === 1}>
                  {strings.tokens.days(days)}
                </option>
              ))}
            </select>
          </span>
        </label>
        <ExpiryField />
        <ErrorText text={error} />
        <Actions busy={busy} label={strings.tokens.rotate} onClose={onClose} />
      </form>
    </Modal>
  )
}

export function RevokeDialog(props: Omit<DialogProps, 'onCreated'> & { readonly token: ManagedToken }) {
  const { token, tokens, onClose } = props
  const { tokenInfo } = useGallery()
  const { busy, error, run } = useAction()
  return (
    <Modal class="dialog" labelledBy="revoke-token" onCancel={onClose}>
      <form
        onSubmit={(event) => {
          event.preventDefault()
          void run(async () => {
            await tokens.revoke(token.id)
            onClose()
          })
        }}
      >
        <h2 id="revoke-token">{strings.tokens.revokeTitle(token.name || token.id)}</h2>
        <p>{strings.tokens.revokeAbout}</p>
        {token.id === tokenInfo.id && <p>{strings.tokens.revokeOwn}</p>}
        <ErrorText text={error} />
        <Actions busy={busy} label={strings.tokens.revoke} danger onClose={onClose} />
      </form>
    </Modal>
  )
}

/** Shows a new token, once. */
export function NewTokenDialog({ created, onClose }: { created: CreatedToken; onClose: () => void }) {
  const { token: secret, scopes } = created
  const { created: title, shownOnce, newToken: label, copy, copied } = strings.tokens
  const texts = { title, shownOnce, label, copy, copied }
  return (
    <SecretDialog id="new-token" secret={secret} texts={texts} onClose={onClose}>
      {scopes.includes('media:write') && <ShareXLink secret={secret} />}
    </SecretDialog>
  )
}

/** Downloads a file that contains the token, so it is for programs that can upload with it. */
function ShareXLink({ secret }: { secret: string }) {
  const [url, setUrl] = useState('')
  useEffect(() => {
    const blob = new Blob([shareXConfiguration(serviceUrl(), secret)], { type: 'application/json' })
    const created = URL.createObjectURL(blob)
    setUrl(created)
    return () => URL.revokeObjectURL(created)
  }, [secret])
  return (
    <a class="button" href={url} download="mediabucket.sxcu">
      {strings.tokens.shareX}
    </a>
  )
}
