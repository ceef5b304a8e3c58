import { useState } from 'preact/hooks'
import { Modal } from '../components/modal.tsx'
import { useGallery } from '../gallery-context.ts'
import { errorMessage } from '../service/connection.ts'
import { strings } from '../strings.ts'
import { batchSize } from './deletion.ts'

/** Asks for confirmation before files are deleted, then shows the progress. */
export function DeletionDialog() {
  const { deletion, mediaCache } = useGallery()
  const ids = deletion.pending.value
  if (ids === null) return null
  const processed = deletion.processed.value
  if (deletion.toTrash.value)
    return ids.length > batchSize ? <MovingToTrash count={ids.length} processed={processed ?? 0} /> : null
  const busy = processed !== null
  const [first = ''] = ids
  const name = mediaCache.get(first).value?.filename ?? strings.unnamed
  return (
    <Modal class="dialog" labelledBy="deletion-title" onCancel={deletion.cancel}>
      <h2 id="deletion-title">{strings.deletion.title(ids.length)}</h2>
      <p class="wrap">{ids.length === 1 ? strings.deletion.one(name) : strings.deletion.many}</p>
      {busy && (
        <p role="status">
          {strings.deletion.busy(Math.min(processed, ids.length - 1), ids.length)}
          <progress
            class="progress"
            aria-label={strings.deletion.title(ids.length)}
            max={ids.length}
            value={processed}
          />
        </p>
      )}
      <div class="dialog-actions">
        <button type="button" class="button" disabled={busy} onClick={deletion.cancel}>
          {strings.cancel}
        </button>
        <button
          type="button"
          class="button danger"
          aria-disabled={busy}
          onClick={() => !busy && void deletion.confirm()}
        >
          {strings.deletion.confirm(ids.length)}
        </button>
      </div>
    </Modal>
  )
}

/** The progress while more files are moved to the trash than one request moves. */
function MovingToTrash({ count, processed }: { count: number; processed: number }) {
  const title = strings.deletion.moving(count)
  return (
    <Modal class="dialog" labelledBy="moving-title" onCancel={() => undefined}>
      <h2 id="moving-title">{title}</h2>
      <progress class="progress" aria-label={title} max={count} value={processed} />
    </Modal>
  )
}

/** Asks whether a picture that has, or may have, a location is to be shared. */
export function LocationDialog() {
  const { locationWarning } = useGallery()
  const question = locationWarning.pending.value
  if (question === null) return null
  const name = question.media.filename ?? strings.unnamed
  const { title, warning, notExaminedTitle, notExamined, share } = strings.location
  return (
    <Modal class="dialog" labelledBy="location-title" onCancel={locationWarning.cancel}>
      <h2 id="location-title">{question.examined ? title : notExaminedTitle}</h2>
      <p class="wrap">{question.examined ? warning(name) : notExamined(name)}</p>
      <div class="dialog-actions">
        <button type="button" class="button" onClick={locationWarning.cancel}>
          {strings.cancel}
        </button>
        <button type="button" class="button primary" onClick={locationWarning.confirm}>
          {share}
        </button>
      </div>
    </Modal>
  )
}

/** Sets a label of the selected items. */
export function LabelDialog({ ids, onDone }: { ids: readonly string[]; onDone: () => void }) {
  const { edits, notices, timeline } = useGallery()
  const [busy, setBusy] = useState(false)
  async function save(form: HTMLFormElement): Promise<void> {
    const textOf = (name: string) => `${new FormData(form).get(name) ?? ''}`.trim()
    setBusy(true)
    try {
      await edits.label(ids, textOf('key'), textOf('value'))
      notices.show(strings.selection.labelled(ids.length))
      void timeline.refresh()
      onDone()
    } catch (error) {
      notices.show(strings.details.notSaved(errorMessage(error)), { tone: 'bad' })
      setBusy(false)
    }
  }
  return (
    <Modal class="dialog" labelledBy="label-title" onCancel={onDone}>
      <form
        onSubmit={(event) => {
          event.preventDefault()
          if (!busy) void save(event.currentTarget)
        }}
      >
        <h2 id="label-title">{strings.selection.labelTitle(ids.length)}</h2>
        <div class="text-field">
          <label for="label-key">{strings.selection.labelKey}</label>
          <input
            id="label-key"
            name="key"
            type="text"
            required
            autocomplete="off"
            autocapitalize="none"
            pattern="[a-z0-9_.\-]{1,40}"
            title={strings.selection.labelKeyHint}
            aria-describedby="label-key-hint"
          />
          <p id="label-key-hint" class="small muted">
            {strings.selection.labelKeyHint}
          </p>
        </div>
        <div class="text-field">
          <label for="label-value">{strings.selection.labelValue}</label>
          <input id="label-value" name="value" type="text" autocomplete="off" maxLength={200} />
        </div>
        <div class="dialog-actions">
          <button type="button" class="button" onClick={onDone}>
            {strings.cancel}
          </button>
          <button type="submit" class="button primary" aria-disabled={busy}>
            {strings.details.save}
          </button>
        </div>
      </form>
    </Modal>
  )
}
