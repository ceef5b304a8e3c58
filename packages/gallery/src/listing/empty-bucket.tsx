import { FileButton } from '../components/file-button.tsx'
import { Icon } from '../components/icon.tsx'
import { useGallery } from '../gallery.ts'
import { strings } from '../strings.ts'

export function EmptyBucket() {
  const { uploads } = useGallery()
  const add = (files: File[]) => void uploads.add(files)
  return (
    <div class={uploads.allowed ? 'state empty' : 'state'}>
      <span class="empty-figure">
        <Icon name="picture" size={44} />
      </span>
      <h2>{strings.listing.empty}</h2>
      <p>{uploads.allowed ? strings.listing.emptyAbout : strings.listing.emptyReadOnly}</p>
      {uploads.allowed && (
        <div class="state-actions">
          <FileButton class="button primary" onChoose={add}>
            <Icon name="upload" />
            {strings.listing.chooseFiles}
          </FileButton>
          <FileButton class="button" folder onChoose={add}>
            <Icon name="folder" />
            {strings.listing.chooseFolder}
          </FileButton>
        </div>
      )}
    </div>
  )
}
