import type { CreatedToken, ManagedToken } from '@mediabucket/client'
import { maxTokenName } from '@mediabucket/client/rules'
import { useLayoutEffect, useState } from 'preact/hooks'
import { ActionDialog } from '../components/action-dialog.tsx'
import { SecretDialog } from '../components/secret-dialog.tsx'
import { useBucket } from '../gallery-context.ts'
import { serviceUrl } from '../service/urls.ts'
import { strings } from '../strings.ts'
import { shareXConfiguration, type Tokens } from './tokens.ts'

interface DialogProps {
  readonly tokens: Tokens
  readonly onClose: () => void
  /** Receives a new token, to be shown once. */
  readonly onCreated: (created: CreatedToken) => void
}

const day = 86_400

export const inDays = (days: number): Date | null =>
  days > 0 ? new Date(Date.now() + days * day * 1000) : null

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
  const { tokenInfo } = useBucket()
  const texts = strings.tokens
  const scopesOf = (fields: FormData) => fields.getAll('scope').map(String)
  async function create(fields: FormData): Promise<void> {
    const name = `${fields.get('name') ?? ''}`.trim()
    const expiresAt = inDays(Number(fields.get('days')))
    onCreated(await tokens.create({ name, scopes: scopesOf(fields), expiresAt }))
  }
  return (
    <ActionDialog
      title={texts.create}
      label={texts.create}
      onClose={onClose}
      check={(fields) => (scopesOf(fields).length === 0 ? texts.noScope : null)}
      act={create}
    >
      <label>
        {texts.name}
        <input type="text" name="name" maxLength={maxTokenName} autocomplete="off" />
      </label>
      <fieldset>
        <legend>{texts.scopes}</legend>
        {tokenInfo.scopes.map((scope) => (
          <label key={scope} class="token-scope">
            <input type="checkbox" name="scope" value={scope} defaultChecked={scope === 'media:read'} />
            {texts.scopeNames[scope] ?? scope}
          </label>
        ))}
      </fieldset>
      <ExpiryField />
    </ActionDialog>
  )
}

/** Asks how long the replaced token remains valid. */
export function RotateDialog(props: DialogProps & { readonly token: ManagedToken }) {
  const { token, tokens, onClose, onCreated } = props
  const texts = strings.tokens
  async function rotate(fields: FormData): Promise<void> {
    const expiresAt = inDays(Number(fields.get('days')))
    onCreated(await tokens.rotate(token.id, Number(fields.get('overlap')), expiresAt))
  }
  return (
    <ActionDialog
      title={texts.rotateTitle(token.name || token.id)}
      label={texts.rotate}
      onClose={onClose}
      act={rotate}
    >
      <p>{texts.rotateAbout}</p>
      <label>
        {texts.overlap}
        <span class="select">
          <select name="overlap">
            <option value="0">{texts.atOnce}</option>
            <option value="3600">{texts.hour}</option>
            {[1, 7, 30].map((days) => (
              <option key={days} value={days * day} selected={days === 1}>
                {texts.days(days)}
              </option>
            ))}
          </select>
        </span>
      </label>
      <ExpiryField />
    </ActionDialog>
  )
}

export function RevokeDialog(props: Omit<DialogProps, 'onCreated'> & { readonly token: ManagedToken }) {
  const { token, tokens, onClose } = props
  const { tokenInfo } = useBucket()
  const texts = strings.tokens
  async function revoke(): Promise<void> {
    await tokens.revoke(token.id)
    onClose()
  }
  return (
    <ActionDialog
      title={texts.revokeTitle(token.name || token.id)}
      label={texts.revoke}
      danger
      onClose={onClose}
      act={revoke}
    >
      <p>{texts.revokeAbout}</p>
      {token.id === tokenInfo.id && <p>{texts.revokeOwn}</p>}
    </ActionDialog>
  )
}

/** Shows a new token, once. */
export function NewTokenDialog({ created, onClose }: { created: CreatedToken; onClose: () => void }) {
  const { token: secret, scopes } = created
  const { created: title, shownOnce: about, newToken: label, copy } = strings.tokens
  const texts = { title, about, label, copy }
  return (
    <SecretDialog id="new-token" secret={secret} texts={texts} onClose={onClose}>
      {scopes.includes('media:write') && <ShareXLink secret={secret} />}
    </SecretDialog>
  )
}

/** Downloads a file that contains the token, so it is for programs that can upload with it. */
function ShareXLink({ secret }: { secret: string }) {
  const [url, setUrl] = useState('')
  // Before the link can be used: without its address it would save the page.
  useLayoutEffect(() => {
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
