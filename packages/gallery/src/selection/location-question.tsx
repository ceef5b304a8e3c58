import { Modal } from '../components/modal.tsx'
import { useGallery } from '../gallery-context.ts'
import { strings } from '../strings.ts'

/** Asks whether a picture that has, or may have, a location is to be shared. */
export function LocationQuestion() {
  const { locationWarning } = useGallery()
  const question = locationWarning.pending.value
  if (question === null) return null
  const name = question.media.filename ?? strings.unnamed
  const { title, warning, notExaminedTitle, notExamined, share } = strings.details.location
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
