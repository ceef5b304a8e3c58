import type { NewTokenLimits } from '@mediabucket/client'
import { ActionDialog } from '../components/action-dialog.tsx'
import { SecretDialog } from '../components/secret-dialog.tsx'
import { formatSize } from '../format.ts'
import { serviceUrl } from '../service/urls.ts'
import { strings } from '../strings.ts'
import { QrCode } from './qr-code.tsx'
import { type DialogProps, ExpiryField, inDays } from './token-dialogs.tsx'

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

/** The labels of lines such as `album=42`; null if a line is none. */
function labelsOf(fields: FormData): Readonly<Record<string, string>> | null {
  const lines = `${fields.get('labels') ?? ''}`.split('\n').filter((line) => line.trim() !== '')
  const pairs = lines.map((line) => /^\s*([a-z0-9_.-]{1,40})\s*=(.{0,200})$/.exec(line))
  if (pairs.includes(null)) return null
  return Object.fromEntries(pairs.map((pair) => [pair?.[1] ?? '', pair?.[2]?.trim() ?? '']))
}

function limitsOf(fields: FormData): NewTokenLimits {
  const kind = `${fields.get('kind')}`
  const labels = labelsOf(fields) ?? {}
  return {
    maxBytes: numberOf(fields.get('total')),
    itemDays: numberOf(fields.get('item-days')),
    ...(Object.keys(labels).length > 0 && { labels }),
    maxItems: numberOf(fields.get('items')),
    maxFileSize: numberOf(fields.get('size')),
    types: (isKind(kind) ? kinds[kind] : null) ?? undefined,
  }
}

/** Asks for the properties of an upload link. */
export function AskDialog({ tokens, onClose, onCreated }: DialogProps) {
  const { links } = strings
  async function create(fields: FormData): Promise<void> {
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
    <ActionDialog
      title={links.ask}
      label={links.create}
      onClose={onClose}
      check={(fields) => (labelsOf(fields) === null ? strings.details.labelsHint : '')}
      act={create}
    >
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
      <label>
        {links.labels}
        <textarea name="labels" rows={2} placeholder="album=42" title={strings.details.labelsHint} />
      </label>
      <ExpiryField label={links.validFor} selected={30} />
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
