import type { Focus, Media, TaggedMedia } from '@mediabucket/client'
import { maxAltText, maxCaption } from '@mediabucket/client/rules'
import { useEffect, useRef, useState } from 'preact/hooks'
import { useGallery } from '../gallery-context.ts'
import { LabelFields } from '../labels/label-fields.tsx'
import { changedLabels, isMistake, type LabelMistake, labelsOf } from '../labels/read-labels.ts'
import { errorMessage } from '../service/connection.ts'
import {
  createEdits,
  type ItemTexts,
  isSameFocus,
  type TextName,
  textNames,
  typedText,
} from '../service/edits.ts'
import { strings } from '../strings.ts'
import { FocusField } from './focus-field.tsx'

interface Versions {
  /** What the form was opened with. */
  readonly opened: Media
  /** What the server has, as far as it is known. */
  readonly current: TaggedMedia
  /** The texts of others that differ from those that were typed, except those that were taken. */
  readonly theirs: Partial<ItemTexts>
  /** Their focus, in the same way. */
  readonly theirFocus?: Focus | null | undefined
}

/** A form that changes the texts of an item. Texts that others have changed in the meantime are shown beside those that were typed. */
export function EditDetails({ media, onDone }: { media: Media; onDone: () => void }) {
  const gallery = useGallery()
  const { mediaCache, notices } = gallery
  const edits = createEdits(gallery)
  const [versions, setVersions] = useState<Versions | null>(null)
  const [busy, setBusy] = useState(false)
  /** Why the texts could not be loaded or saved; empty if they were. */
  const [error, setError] = useState('')
  const [mistake, setMistake] = useState<LabelMistake | null>(null)
  /** Undefined while it was not edited. */
  const [focus, setFocus] = useState<Focus | null | undefined>(undefined)

  useEffect(() => {
    let unmounted = false
    edits
      .load(media.id)
      .then((loaded) => {
        if (!unmounted) setVersions({ opened: loaded.media, current: loaded, theirs: {} })
      })
      .catch((reason: unknown) => {
        if (!unmounted) setError(errorMessage(reason))
      })
    return () => {
      unmounted = true
    }
  }, [media.id])

  async function save({ opened, current }: Versions, form: HTMLFormElement): Promise<void> {
    const fields = new FormData(form)
    const textOf = (name: TextName) => typedText(`${fields.get(name) ?? ''}`)
    const labels = labelsOf(fields)
    setError('')
    setMistake(isMistake(labels) ? labels : null)
    if (isMistake(labels)) return
    setBusy(true)
    try {
      const texts = { filename: textOf('filename'), alt_text: textOf('alt_text'), caption: textOf('caption') }
      const changed = changedLabels(opened.labels ?? {}, labels)
      const result = await edits.save(current, texts, { labels: changed, focus })
      if ('conflict' in result) {
        const { media: now } = result.conflict
        const theirs: Partial<Record<TextName, string | null>> = {}
        for (const name of textNames)
          if (texts[name] === typedText(current.media[name])) setField(form, name, now[name] ?? null)
          else if (typedText(now[name]) !== typedText(opened[name]) && texts[name] !== typedText(now[name]))
            theirs[name] = now[name] ?? null
        const isTheirFocus =
          focus !== undefined && !isSameFocus(now.focus, opened.focus) && !isSameFocus(now.focus, focus)
        const theirFocus = isTheirFocus ? (now.focus ?? null) : undefined
        const loaded = { opened, current: result.conflict, theirs, theirFocus }
        // Others have restored what the form was opened with.
        if (Object.keys(theirs).length === 0 && !isTheirFocus) return await save(loaded, form)
        setVersions(loaded)
        setBusy(false)
        return
      }
      // An edit changes no URL, and its response has no signed ones.
      const { url, variants } = media
      mediaCache.putEdited({ ...result.saved, url, variants })
      notices.show(strings.details.saved)
      onDone()
    } catch (reason) {
      setError(strings.details.notSaved(errorMessage(reason)))
      setBusy(false)
    }
  }

  if (versions === null)
    return error === '' ? (
      <p role="status">{strings.viewer.loading}</p>
    ) : (
      <>
        <p role="alert">{error}</p>
        <div class="dialog-actions">
          <button type="button" class="button" onClick={onDone}>
            {strings.cancel}
          </button>
        </div>
      </>
    )
  const { opened, current, theirs, theirFocus } = versions
  const inConflict = Object.keys(theirs).length > 0 || theirFocus !== undefined
  const textsOf = (name: TextName) => ({
    ...{ name, text: opened[name] ?? null, theirs: theirs[name] },
    onTaken() {
      const { [name]: _taken, ...others } = theirs
      setVersions({ ...versions, theirs: others })
    },
    // What is typed during a save would be lost.
    readOnly: busy,
  })
  return (
    <form
      class="edit-details"
      onSubmit={(event) => {
        event.preventDefault()
        if (!busy) void save(versions, event.currentTarget)
      }}
    >
      <TextField {...textsOf('filename')} label={strings.details.name} rows={1} />
      <TextField
        {...textsOf('alt_text')}
        label={strings.details.altText}
        hint={strings.details.altTextHint}
        rows={2}
        maxLength={maxAltText}
      />
      <TextField {...textsOf('caption')} label={strings.details.caption} rows={3} maxLength={maxCaption} />
      {media.variants && media.width && media.height && (
        <FocusField
          media={media}
          focus={focus === undefined ? (current.media.focus ?? null) : focus}
          readOnly={busy}
          theirs={theirFocus}
          onChange={setFocus}
          onTaken={() => {
            setFocus(theirFocus)
            setVersions({ ...versions, theirFocus: undefined })
          }}
        />
      )}
      <LabelFields
        legend={strings.labels.legend}
        labels={opened.labels ?? {}}
        readOnly={busy}
        mistake={mistake}
      />
      <p role="alert" class="edit-conflict">
        {error !== '' ? error : inConflict && strings.details.conflict}
      </p>
      <div class="dialog-actions">
        <button type="button" class="button" onClick={onDone}>
          {strings.cancel}
        </button>
        <button type="submit" class="button primary" aria-disabled={busy}>
          {inConflict ? strings.details.saveMine : strings.details.save}
        </button>
      </div>
    </form>
  )
}

function setField(form: HTMLFormElement, name: TextName, text: string | null): void {
  const field = form.elements.namedItem(name)
  if (field instanceof HTMLInputElement || field instanceof HTMLTextAreaElement) field.value = text ?? ''
}

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
