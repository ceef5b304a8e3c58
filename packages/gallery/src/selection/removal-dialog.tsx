import { useGallery } from '../gallery.ts'
import { Modal } from '../parts/modal.tsx'
import { strings } from '../strings.ts'

/** Asks before anything is deleted, and shows how far it is. */
export function RemovalDialog() {
  const { removal, items, listing } = useGallery()
  const ids = removal.asked.value
  if (ids === null) return null
  const done = removal.done.value
  const busy = done !== null
  const [first = ''] = ids
  const elsewhere = ids.filter((id) => !listing.ids.value.includes(id)).length
  const name = items.of(first).value?.filename ?? strings.unnamed
  return (
    <Modal class="dialog" labelledBy="removal-title" onCancel={removal.cancel}>
      <h2 id="removal-title">{strings.removal.title(ids.length)}</h2>
      <p class="wrap">{ids.length === 1 ? strings.removal.one(name) : strings.removal.many}</p>
      {ids.length > 1 && elsewhere > 0 && !busy && <p>{strings.removal.elsewhere(elsewhere)}</p>}
      {busy && (
        <p role="status">
          {strings.removal.busy(Math.min(done, ids.length - 1), ids.length)}
          <progress
            class="progress"
            aria-label={strings.removal.title(ids.length)}
            max={ids.length}
            value={done}
          />
        </p>
      )}
      <div class="dialog-actions">
        <button type="button" class="button" disabled={busy} onClick={removal.cancel}>
          {strings.cancel}
        </button>
        <button
          type="button"
          class="button danger"
          aria-disabled={busy}
          onClick={() => !busy && void removal.confirm()}
        >
          {strings.removal.confirm(ids.length)}
        </button>
      </div>
    </Modal>
  )
}
