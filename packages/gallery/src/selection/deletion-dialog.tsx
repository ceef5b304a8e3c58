import { Modal } from '../components/modal.tsx'
import { useGallery } from '../gallery.ts'
import { strings } from '../strings.ts'

/** Asks before anything is deleted, and shows how far it is. */
export function DeletionDialog() {
  const { deletion, items, listing } = useGallery()
  const ids = deletion.asked.value
  if (ids === null) return null
  const done = deletion.done.value
  const busy = done !== null
  const [first = ''] = ids
  const elsewhere = ids.filter((id) => !listing.ids.value.includes(id)).length
  const name = items.of(first).value?.filename ?? strings.unnamed
  return (
    <Modal class="dialog" labelledBy="deletion-title" onCancel={deletion.cancel}>
      <h2 id="deletion-title">{strings.deletion.title(ids.length)}</h2>
      <p class="wrap">{ids.length === 1 ? strings.deletion.one(name) : strings.deletion.many}</p>
      {ids.length > 1 && elsewhere > 0 && !busy && <p>{strings.deletion.elsewhere(elsewhere)}</p>}
      {busy && (
        <p role="status">
          {strings.deletion.busy(Math.min(done, ids.length - 1), ids.length)}
          <progress
            class="progress"
            aria-label={strings.deletion.title(ids.length)}
            max={ids.length}
            value={done}
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
