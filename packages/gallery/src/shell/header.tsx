import { useState } from 'preact/hooks'
import { useGallery } from '../gallery.ts'
import { FileChoice } from '../parts/file-choice.tsx'
import { Icon } from '../parts/icon.tsx'
import { Mark } from '../parts/wordmark.tsx'
import { strings } from '../strings.ts'
import { SignOutDialog } from './sign-out-dialog.tsx'
import { UsageMeter } from './usage-meter.tsx'

export function Header() {
  const { uploads, signOut } = useGallery()
  const [asking, ask] = useState(false)
  return (
    <header class="header">
      <p class="wordmark">
        <Mark />
        <span>{strings.product}</span>
      </p>
      <UsageMeter />
      <div class="header-actions">
        {uploads.allowed && (
          <>
            <FileChoice
              class="button folder-button"
              folder
              label={strings.header.uploadFolder}
              onChoose={(files) => void uploads.add(files)}
            >
              <Icon name="folder" />
            </FileChoice>
            <FileChoice class="button primary" onChoose={(files) => void uploads.add(files)}>
              <Icon name="upload" />
              {strings.header.upload}
            </FileChoice>
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
