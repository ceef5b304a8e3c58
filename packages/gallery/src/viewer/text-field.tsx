import { useRef } from 'preact/hooks'
import type { TextName } from '../service/edits.ts'
import { strings } from '../strings.ts'

interface TextFieldProps {
  readonly name: TextName
  readonly label: string
  readonly hint?: string
  /** The text at first. */
  readonly text: string | null
  /** The number of lines; one line accepts no line end. */
  readonly rows: number
  readonly maxLength?: number
  readonly readOnly: boolean
  /** The text that others have saved in the meantime; undefined if they have not. */
  readonly theirs: string | null | undefined
  /** Called when the field has this text. */
  readonly onTaken: () => void
}

/** A field for a text of an item. If others have changed the text, shows theirs below, with a button that takes it. */
export function TextField(props: TextFieldProps) {
  const { name, label, hint, text, rows, maxLength, readOnly, theirs, onTaken } = props
  const field = useRef<HTMLInputElement & HTMLTextAreaElement>(null)
  const fieldId = `${name}-field`
  const hintId = `${name}-hint`
  const theirsId = `${name}-theirs`
  const attributes = {
    ref: field,
    id: fieldId,
    name,
    maxLength,
    readOnly,
    defaultValue: text ?? '',
    'aria-describedby':
      [hint && hintId, theirs !== undefined && theirsId].filter(Boolean).join(' ') || undefined,
  }
  return (
    <div class="text-field">
      <label for={fieldId}>{label}</label>
      {rows === 1 ? (
        <input type="text" autocomplete="off" {...attributes} />
      ) : (
        <textarea rows={rows} {...attributes} />
      )}
      {hint && (
        <p id={hintId} class="small muted">
          {hint}
        </p>
      )}
      {theirs !== undefined && (
        <div class="their-text">
          <p id={theirsId}>
            <span class="muted">{strings.details.theirs}</span>{' '}
            {theirs === null ? strings.details.noText : <q>{theirs}</q>}
          </p>
          <button
            type="button"
            class="button small"
            aria-label={strings.details.useTheirsOf(label)}
            aria-disabled={readOnly}
            onClick={() => {
              if (field.current === null || readOnly) return
              field.current.value = theirs ?? ''
              field.current.focus()
              onTaken()
            }}
          >
            {strings.details.useTheirs}
          </button>
        </div>
      )}
    </div>
  )
}
