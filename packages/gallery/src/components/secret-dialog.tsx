import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import { copyText } from '../copy-text.ts'
import { strings } from '../strings.ts'
import { IconButton } from './controls.tsx'
import { Icon } from './icon.tsx'
import { Modal } from './modal.tsx'

interface SecretDialogProps {
  readonly id: string
  readonly secret: string
  readonly texts: {
    readonly title: string
    readonly about: string
    readonly label: string
    readonly copy: string
  }
  /** Shown above the secret. */
  readonly picture?: ComponentChildren
  /** Shown below the secret. */
  readonly more?: ComponentChildren
  /** Further actions. */
  readonly children?: ComponentChildren
  readonly onClose: () => void
}

/** Shows a new secret, once. */
export function SecretDialog({ id, secret, texts, picture, more, children, onClose }: SecretDialogProps) {
  const [copied, setCopied] = useState<boolean | null>(null)
  return (
    <Modal class="dialog" labelledBy={id} onCancel={onClose}>
      <h2 id={id}>{texts.title}</h2>
      <p>{texts.about}</p>
      {picture}
      <SecretField label={texts.label} value={secret} />
      {more}
      <p class="message" role="status">
        {copied === null ? '' : copied ? strings.copied : strings.notCopied}
      </p>
      <div class="dialog-actions">
        <button type="button" class="button primary" onClick={() => void copyText(secret).then(setCopied)}>
          <Icon name="link" size={18} />
          {texts.copy}
        </button>
        {children}
        <button type="button" class="button" onClick={onClose}>
          {strings.done}
        </button>
      </div>
    </Modal>
  )
}

const SecretField = ({ label, value }: { label: string; value: string }) => (
  <input
    type="text"
    class="token-secret"
    aria-label={label}
    readOnly
    value={value}
    spellcheck={false}
    onFocus={({ currentTarget }) => currentTarget.select()}
  />
)

/** A text to copy, with its name and a button. */
export function CopyField({ label, value, copy }: { label: string; value: string; copy: string }) {
  const [copied, setCopied] = useState<boolean | null>(null)
  return (
    <div class="copy-field">
      <span aria-hidden="true">{label}</span>
      <SecretField label={label} value={value} />
      <IconButton icon="link" label={copy} onClick={() => void copyText(value).then(setCopied)} />
      <p class="message" role="status">
        {copied === null ? '' : copied ? strings.copied : strings.notCopied}
      </p>
    </div>
  )
}
