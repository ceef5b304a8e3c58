import type { CreatedToken, ManagedToken } from '@mediabucket/client'
import { maxTokenName } from '@mediabucket/client/rules'
import { useLayoutEffect, useState } from 'preact/hooks'
import { ActionDialog } from '../components/action-dialog.tsx'
import { CopyField, SecretDialog } from '../components/secret-dialog.tsx'
import { useBucket } from '../gallery-context.ts'
import { serviceUrl } from '../service/urls.ts'
import { strings } from '../strings.ts'
import { useS3Endpoint } from './s3-endpoint.ts'
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
    onCreated(await tokens.create({ name, scopes: scopesOf(fields), expiresAt, s3: wantsS3(fields) }))
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
      <S3Field />
    </ActionDialog>
  )
}

/** Asks whether the new token has keys for the S3 protocol, where the service offers that. */
export function S3Field() {
  const endpoint = useS3Endpoint()
  if (endpoint === null) return null
  return (
    <label class="token-scope">
      <input type="checkbox" name="s3" />
      {strings.tokens.s3}
    </label>
  )
}

/** What a form with S3Field has chosen. */
export const wantsS3 = (fields: FormData): boolean => fields.get('s3') !== null

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
  const { token: secret, scopes, bucket, access_key_id, secret_access_key } = created
  const { created: title, shownOnce: about, newToken: label, copy } = strings.tokens
  const texts = { title, about, label, copy }
  return (
    <SecretDialog
      id="new-token"
      secret={secret}
      texts={texts}
      more={
        access_key_id !== undefined &&
        secret_access_key !== undefined && (
          <S3Keys bucket={bucket} accessKeyId={access_key_id} secretAccessKey={secret_access_key} />
        )
      }
      onClose={onClose}
    >
      {scopes.includes('media:write') && <ShareXLink secret={secret} />}
    </SecretDialog>
  )
}

interface S3KeysProps {
  readonly bucket: string
  readonly accessKeyId: string
  readonly secretAccessKey: string
}

/** What programs of the S3 protocol need. */
function S3Keys({ bucket, accessKeyId, secretAccessKey }: S3KeysProps) {
  const endpoint = useS3Endpoint()
  const texts = strings.tokens
  const field = (label: string, value: string) => (
    <CopyField label={label} value={value} copy={texts.copyField(label)} />
  )
  return (
    <section class="s3-keys" aria-labelledby="s3-keys-title">
      <h3 id="s3-keys-title">{texts.s3Title}</h3>
      {field(texts.accessKeyId, accessKeyId)}
      {field(texts.secretAccessKey, secretAccessKey)}
      {endpoint !== null && field(texts.endpoint, endpoint)}
      <p class="small muted">{texts.s3Hint(bucket)}</p>
    </section>
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
