import { Modal } from '../components/modal.tsx'
import { useGallery } from '../gallery-context.ts'
import { strings } from '../strings.ts'
import { useCode } from '../use-code.ts'
import { batchSize } from './deletion.ts'

/** Asks for confirmation before files are deleted, then shows the progress. */
export function DeletionDialog() {
  const { deletion } = useGallery()
  const ids = deletion.pending.value
  const isSilent = deletion.toTrash.value && (ids?.length ?? 0) <= batchSize
  return ids === null || isSilent ? null : <DeletionQuestion />
}

/** The question, when its code is loaded. */
function DeletionQuestion() {
  const { deletion } = useGallery()
  const code = useCode(() => import('./deletion-question.tsx'), 'deletion')
  // A move to the trash goes on without its progress.
  if (code === 'loading' || (code === 'failed' && deletion.toTrash.value)) return null
  return code === 'failed' ? <NotLoaded onCancel={deletion.cancel} /> : <code.DeletionQuestion />
}

/** Asks whether a picture that has, or may have, a location is to be shared. */
export function LocationDialog() {
  const { locationWarning } = useGallery()
  return locationWarning.pending.value === null ? null : <LocationQuestion />
}

/** The question, when its code is loaded. */
function LocationQuestion() {
  const { locationWarning } = useGallery()
  const code = useCode(() => import('./location-question.tsx'), 'details')
  if (code === 'loading') return null
  return code === 'failed' ? <NotLoaded onCancel={locationWarning.cancel} /> : <code.LocationQuestion />
}

function NotLoaded({ onCancel }: { onCancel: () => void }) {
  return (
    <Modal class="dialog" label={strings.notLoaded} onCancel={onCancel}>
      <p role="alert">{strings.notLoaded}</p>
      <div class="dialog-actions">
        <button type="button" class="button" onClick={onCancel}>
          {strings.cancel}
        </button>
      </div>
    </Modal>
  )
}
