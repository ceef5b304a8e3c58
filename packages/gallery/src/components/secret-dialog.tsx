import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import { copyText } from '../copy-text.ts'
import { strings } from '../strings.ts'
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
  /** Further actions. */
  readonly children?: ComponentChildren
  readonly onClose: () => void
}

/** Shows a new secret, once. */
export function SecretDialog({ id, secret, texts, picture, children, onClose }: SecretDialogProps) {
  const [copied, setCopied] = useState<boolean | null>(null)
  return (
    <Modal class="dialog" labelledBy={id} onCancel={onClose}>
      <h2 id={id}>{texts.title}</h2>
      <p>{texts.about}</p>
      {picture}
      <input
        type="text"
        class="token-secret"
        aria-label={texts.label}
        readOnly
        value={secret}
        spellcheck={false}
        onFocus={({ currentTarget }) => currentTarget.select()}
      />
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
