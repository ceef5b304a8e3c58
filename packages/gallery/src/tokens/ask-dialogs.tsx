import type { NewTokenLimits } from '@mediabucket/client'
import { useState } from 'preact/hooks'
import { Icon } from '../components/icon.tsx'
import { Modal } from '../components/modal.tsx'
import { copyText } from '../copy-text.ts'
import { formatSize } from '../format.ts'
import { serviceUrl } from '../service/urls.ts'
import { strings } from '../strings.ts'
import { QrCode } from './qr-code.tsx'
import { Actions, type DialogProps, ErrorText, ExpiryField, inDays, useAction } from './token-dialogs.tsx'

/** The types of each choice; null for any. */
const kinds = {
  pictures: ['image/*'],
  picturesAndVideos: ['image/*', 'video/*'],
  documents: ['application/pdf'],
  any: null,
} as const

const isKind = (name: string): name is keyof typeof kinds => Object.hasOwn(kinds, name)

/** Bytes. One is always chosen, because only a token with a limit does nothing but upload (docs/interface.md T9). */
const sizes = [10_000_000, 100_000_000, 1_000_000_000, 10_000_000_000]

/** A positive number of a field; undefined for none. */
const numberOf = (field: FormDataEntryValue | null): number | undefined => Number(field) || undefined

function limitsOf(fields: FormData): NewTokenLimits {
  const kind = `${fields.get('kind')}`
  return {
    maxItems: numberOf(fields.get('items')),
    maxFileSize: numberOf(fields.get('size')),
    types: (isKind(kind) ? kinds[kind] : null) ?? undefined,
  }
}

/** Asks for the properties of an upload link. */
export function AskDialog({ tokens, onClose, onCreated }: DialogProps) {
  const { links } = strings
  const { busy, error, run } = useAction()
  async function create(form: HTMLFormElement): Promise<void> {
    const fields = new FormData(form)
    const textOf = (name: string) => `${fields.get(name) ?? ''}`.trim()
    const note = textOf('note')
    const created = await tokens.create({
      name: textOf('title'),
      scopes: ['media:write'],
      expiresAt: inDays(Number(fields.get('days'))),
      limits: limitsOf(fields),
      ...(note !== '' && { note }),
    })
    onCreated(created)
  }
  return (
    <Modal class="dialog" labelledBy="ask" onCancel={onClose}>
      <form
        class="token-form"
        onSubmit={(event) => {
          event.preventDefault()
          const form = event.currentTarget
          void run(() => create(form))
        }}
      >
        <h2 id="ask">{links.ask}</h2>
        <p class="muted">{links.askAbout}</p>
        <label>
          {links.title}
          <input type="text" name="title" maxLength={200} autocomplete="off" required />
        </label>
        <label>
          {links.note}
          <textarea name="note" rows={3} maxLength={2000} placeholder={links.noteHint} />
        </label>
        <label>
          {links.which}
          <span class="select">
            <select name="kind">
              {(['pictures', 'picturesAndVideos', 'documents', 'any'] as const).map((kind) => (
                <option key={kind} value={kind}>
                  {links[kind]}
                </option>
              ))}
            </select>
          </span>
        </label>
        <div class="form-pair">
          <label>
            {links.howMany}
            <input type="number" name="items" min={1} max={1_000_000} placeholder={links.anyNumber} />
          </label>
          <label>
            {links.maxSize}
            <span class="select">
              <select name="size">
                {sizes.map((size) => (
                  <option key={size} value={size} selected={size === 100_000_000}>
                    {formatSize(size)}
                  </option>
                ))}
              </select>
            </span>
          </label>
        </div>
        <ExpiryField label={links.validFor} selected={30} />
        <ErrorText text={error} />
        <Actions busy={busy} label={links.create} onClose={onClose} />
      </form>
    </Modal>
  )
}

/** Shows a new upload link and its QR code, once. */
export function LinkDialog({ secret, onClose }: { secret: string; onClose: () => void }) {
  const url = `${new URL('upload', serviceUrl()).href}#${secret}`
  const { links, tokens } = strings
  const [copied, setCopied] = useState<boolean | null>(null)
  return (
    <Modal class="dialog" labelledBy="new-link" onCancel={onClose}>
      <h2 id="new-link">{links.created}</h2>
      <p>{links.createdAbout}</p>
      <QrCode text={url} label={links.code} />
      <input
        type="text"
        class="token-secret"
        aria-label={links.created}
        readOnly
        value={url}
        spellcheck={false}
        onFocus={({ currentTarget }) => currentTarget.select()}
      />
      <p class="message" role="status">
        {copied === null ? '' : copied ? tokens.copied : tokens.notCopied}
      </p>
      <div class="dialog-actions">
        <button type="button" class="button primary" onClick={() => void copyText(url).then(setCopied)}>
          <Icon name="link" size={18} />
          {links.copy}
        </button>
        <button type="button" class="button" onClick={onClose}>
          {tokens.done}
        </button>
      </div>
    </Modal>
  )
}
