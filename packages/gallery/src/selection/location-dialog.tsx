import { Modal } from '../components/modal.tsx'
import { useGallery } from '../gallery.ts'
import { strings } from '../strings.ts'

/** Asks whether a picture with a location is to be shared. */
export function LocationDialog() {
  const { locationWarning } = useGallery()
  const media = locationWarning.pending.value
  if (media === null) return null
  return (
    <Modal class="dialog" labelledBy="location-title" onCancel={locationWarning.cancel}>
      <h2 id="location-title">{strings.location.title}</h2>
      <p class="wrap">{strings.location.warning(media.filename ?? strings.unnamed)}</p>
      <div class="dialog-actions">
        <button type="button" class="button" onClick={locationWarning.cancel}>
          {strings.cancel}
        </button>
        <button type="button" class="button primary" onClick={locationWarning.confirm}>
          {strings.location.share}
        </button>
      </div>
    </Modal>
  )
}
