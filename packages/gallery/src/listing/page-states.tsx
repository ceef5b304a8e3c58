import { FileButton } from '../components/controls.tsx'
import { Icon } from '../components/icon.tsx'
import { useGallery } from '../gallery-context.ts'
import { strings } from '../strings.ts'

export function PageSkeleton() {
  return (
    <ul class="grid" aria-hidden="true">
      {Array.from({ length: 10 }, (_, index) => (
        <li key={index} class="tile">
          <span class="tile-picture skeleton" />
          <span class="tile-caption">
            <span class="skeleton line" />
          </span>
        </li>
      ))}
    </ul>
  )
}

export function FailedPage({ reason, onRetry }: { reason: string; onRetry: () => void }) {
  return (
    <div class="state" role="alert">
      <Icon name="alert" size={40} />
      <h2>{strings.listing.failed}</h2>
      <p>{reason}</p>
      <button type="button" class="button primary" onClick={onRetry}>
        {strings.tryAgain}
      </button>
    </div>
  )
}

export function PagePastEnd({ page, last }: { page: number; last: number }) {
  const { router } = useGallery()
  return (
    <div class="state">
      <Icon name="info" size={40} />
      <h2>{strings.listing.pastEnd(page)}</h2>
      <p>{strings.listing.pastEndHint(last)}</p>
      <button type="button" class="button primary" onClick={() => router.go({ page: last, item: null })}>
        {strings.listing.goToLastPage}
      </button>
    </div>
  )
}

export function EmptyBucket() {
  const { uploads } = useGallery()
  const add = (files: File[]) => void uploads.add(files)
  return (
    <div class={uploads.allowed ? 'state empty' : 'state'}>
      <span class="empty-icon">
        <Icon name="picture" size={44} />
      </span>
      <h2>{strings.listing.empty}</h2>
      <p>{uploads.allowed ? strings.listing.emptyHint : strings.listing.emptyReadOnlyHint}</p>
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
