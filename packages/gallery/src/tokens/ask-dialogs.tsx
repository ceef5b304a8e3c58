import type { CreatedToken, NewTokenLimits } from '@mediabucket/client'
import { maxNote, maxTokenName } from '@mediabucket/client/rules'
import { useRef, useState } from 'preact/hooks'
import { ActionDialog } from '../components/action-dialog.tsx'
import { SecretDialog } from '../components/secret-dialog.tsx'
import { formatSize } from '../format.ts'
import { useBucket } from '../gallery-context.ts'
import { LabelFields } from '../labels/label-fields.tsx'
import { isMistake, type LabelMistake, labelsOf } from '../labels/read-labels.ts'
import { serviceUrl } from '../service/urls.ts'
import { strings } from '../strings.ts'
import { MissingScopesDialog } from './missing-scopes.tsx'
import { QrCode } from './qr-code.tsx'
import { ExpiryField, inDays } from './token-dialogs.tsx'
import { askScopes, missingScopes } from './token-kinds.ts'
import { createToken } from './tokens.ts'

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

/** Bytes of all files together. */
const totals = [1_000_000_000, 10_000_000_000, 100_000_000_000]

/** A positive number of a field; undefined for none. */
const numberOf = (field: FormDataEntryValue | null): number | undefined => Number(field) || undefined

function limitsOf(fields: FormData): NewTokenLimits {
  const kind = `${fields.get('kind')}`
  const labels = labelsOf(fields)
  return {
    maxBytes: numberOf(fields.get('total')),
    itemDays: numberOf(fields.get('item-days')),
    ...(!isMistake(labels) && Object.keys(labels).length > 0 && { labels }),
    maxItems: numberOf(fields.get('items')),
    maxFileSize: numberOf(fields.get('size')),
    types: (isKind(kind) ? kinds[kind] : null) ?? undefined,
  }
}

interface AskDialogsProps {
  readonly onClose: () => void
  readonly onCreated?: () => void
}

/** Asks for the properties of an upload link and shows it, or says which scopes that needs. */
export function AskDialogs({ onClose, onCreated }: AskDialogsProps) {
  const { tokenInfo } = useBucket()
  const [created, setCreated] = useState<CreatedToken | null>(null)
  const missing = missingScopes(tokenInfo, askScopes)
  if (missing.length > 0)
    return <MissingScopesDialog title={strings.listing.ask} scopes={missing} onClose={onClose} />
  if (created !== null) return <LinkDialog secret={created.token} onClose={onClose} />
  return (
    <AskDialog
      onClose={onClose}
      onCreated={(token) => {
        setCreated(token)
        onCreated?.()
      }}
    />
  )
}

interface AskDialogProps {
  readonly onClose: () => void
  /** Receives a new token, to be shown once. */
  readonly onCreated: (created: CreatedToken) => void
}

/** Asks for the properties of an upload link. Those that most people do not need are shown by a button. */
function AskDialog({ onClose, onCreated }: AskDialogProps) {
  const { links } = strings
  const { client, connection } = useBucket()
  const [mistake, setMistake] = useState<LabelMistake | null>(null)
  const more = useRef<HTMLDetailsElement>(null)
  /** The browser can point at a field only if it is shown. */
  const showMore = () => {
    if (more.current) more.current.open = true
  }
  function areLabelsValid(fields: FormData): boolean {
    const labels = labelsOf(fields)
    if (isMistake(labels)) showMore()
    setMistake(isMistake(labels) ? labels : null)
    return !isMistake(labels)
  }
  async function create(fields: FormData): Promise<void> {
    const textOf = (name: string) => `${fields.get(name) ?? ''}`.trim()
    const note = textOf('note')
    const created = await createToken(client.tokens, connection, {
      name: textOf('title'),
      scopes: ['media:write'],
      expiresAt: inDays(Number(fields.get('days'))),
      limits: limitsOf(fields),
      ...(note !== '' && { note }),
    })
    onCreated(created)
  }
  return (
    <ActionDialog
      title={strings.listing.ask}
      label={links.create}
      onClose={onClose}
      check={(fields) => (areLabelsValid(fields) ? null : '')}
      act={create}
    >
      <p class="muted">{links.askAbout}</p>
      <label>
        {links.title}
        <input type="text" name="title" maxLength={maxTokenName} autocomplete="off" required />
      </label>
      <div class="form-pair">
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
        <ExpiryField label={links.validFor} selected={30} />
      </div>
      <details ref={more} class="form-more" onInvalidCapture={showMore}>
        <summary>{links.moreFields}</summary>
        <label>
          {links.note}
          <textarea name="note" rows={3} maxLength={maxNote} placeholder={links.noteHint} />
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
        <div class="form-pair">
          <label>
            {links.maxTotal}
            <span class="select">
              <select name="total">
                <option value="0">{links.noLimit}</option>
                {totals.map((size) => (
                  <option key={size} value={size}>
                    {formatSize(size)}
                  </option>
                ))}
              </select>
            </span>
          </label>
          <label>
            {links.deleteAfter}
            <input type="number" name="item-days" min={1} max={36_500} placeholder={links.never} />
          </label>
        </div>
        <LabelFields legend={links.labels} mistake={mistake} />
      </details>
    </ActionDialog>
  )
}

/** Shows a new upload link and its QR code, once. */
export function LinkDialog({ secret, onClose }: { secret: string; onClose: () => void }) {
  const url = `${new URL('upload', serviceUrl()).href}#${secret}`
  const { created, createdAbout: about, copy, code } = strings.links
  const texts = { title: created, about, label: created, copy }
  return (
    <SecretDialog
      id="new-link"
      secret={url}
      texts={texts}
      picture={<QrCode text={url} label={code} />}
      onClose={onClose}
    />
  )
}
