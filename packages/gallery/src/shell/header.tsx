import { useState } from 'preact/hooks'
import { FileButton } from '../components/file-button.tsx'
import { Icon } from '../components/icon.tsx'
import { Logo } from '../components/logo.tsx'
import { useGallery } from '../gallery.ts'
import { strings } from '../strings.ts'
import { SignOutDialog } from './sign-out-dialog.tsx'
import { UsageMeter } from './usage-meter.tsx'

export function Header() {
  const { uploads, signOut } = useGallery()
  const [asking, ask] = useState(false)
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
              {strings.header.upload}
            </FileButton>
          </>
        )}
        <button
          type="button"
          class="button sign-out"
          aria-label={strings.header.signOut}
          title={strings.header.signOut}
          onClick={() => (uploads.view.value.totals.left > 0 ? ask(true) : signOut())}
        >
          <Icon name="exit" />
          <span class="sign-out-word">{strings.header.signOut}</span>
        </button>
      </div>
      {asking && <SignOutDialog onStay={() => ask(false)} />}
    </header>
  )
}
