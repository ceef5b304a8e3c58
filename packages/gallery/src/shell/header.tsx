import { useState } from 'preact/hooks'
import { FileButton } from '../components/file-button.tsx'
import { Icon } from '../components/icon.tsx'
import { Logo } from '../components/logo.tsx'
import { Modal } from '../components/modal.tsx'
import { useGallery } from '../gallery.ts'
import { strings } from '../strings.ts'
import { SettingsMenu } from './settings-menu.tsx'
import { UsageMeter } from './usage-meter.tsx'

export function Header() {
  const { uploads, signOut } = useGallery()
  const [confirming, setConfirming] = useState(false)
  return (
    <header class="header">
      <p class="wordmark">
        <Logo />
        <span>{strings.product}</span>
      </p>
      <UsageMeter />
      <div class="header-actions">
        {uploads.allowed && (
          <>
            <FileButton
              class="button folder-button"
              folder
              label={strings.header.uploadFolder}
              onChoose={(files) => void uploads.add(files)}
            >
              <Icon name="folder" />
            </FileButton>
            <FileButton class="button primary" onChoose={(files) => void uploads.add(files)}>
              <Icon name="upload" />
              <span class="off-screen-narrow">{strings.header.upload}</span>
            </FileButton>
          </>
        )}
        <SettingsMenu />
        <button
          type="button"
          class="button sign-out"
          aria-label={strings.header.signOut}
          title={strings.header.signOut}
          onClick={() => (uploads.view.value.totals.left > 0 ? setConfirming(true) : signOut())}
        >
          <Icon name="exit" />
          <span class="sign-out-label">{strings.header.signOut}</span>
        </button>
      </div>
      {confirming && <SignOutDialog onStay={() => setConfirming(false)} />}
    </header>
  )
}

/** Asks for confirmation during uploads, because signing out cancels them. */
function SignOutDialog({ onStay }: { onStay: () => void }) {
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
