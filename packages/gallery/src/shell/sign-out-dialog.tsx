import { Modal } from '../components/modal.tsx'
import { useGallery } from '../gallery.ts'
import { strings } from '../strings.ts'

/** Asked when uploads are under way: they need the token. */
export function SignOutDialog({ onStay }: { onStay: () => void }) {
  const { uploads, signOut } = useGallery()
  return (
    <Modal class="dialog" labelledBy="sign-out-title" onCancel={onStay}>
      <h2 id="sign-out-title">{strings.signOut.title}</h2>
      <p>{strings.signOut.about(uploads.view.value.totals.left)}</p>
      <div class="dialog-actions">
        <button type="button" class="button" onClick={onStay}>
          {strings.signOut.stay}
        </button>
        <button type="button" class="button danger" onClick={signOut}>
          {strings.signOut.leave}
        </button>
      </div>
    </Modal>
  )
}
