import { Icon } from '../components/icon.tsx'
import { useGallery } from '../gallery.ts'
import { strings } from '../strings.ts'

export function PageSkeleton() {
  return (
    <ul class="grid" aria-hidden="true">
      {Array.from({ length: 10 }, (_, index) => (
        <li key={index} class="tile">
          <span class="tile-picture skeleton" />
          <span class="tile-words">
            <span class="skeleton line" />
          </span>
        </li>
      ))}
    </ul>
  )
}

export function FailedPage({ reason }: { reason: string }) {
  const { listing } = useGallery()
  return (
    <div class="state" role="alert">
      <Icon name="alert" size={40} />
      <h2>{strings.listing.failed}</h2>
      <p>{reason}</p>
      <button type="button" class="button primary" onClick={() => void listing.reload()}>
        {strings.tryAgain}
      </button>
    </div>
  )
}

export function PastEnd({ page, last }: { page: number; last: number }) {
  const { router } = useGallery()
  return (
    <div class="state">
      <Icon name="info" size={40} />
      <h2>{strings.listing.pastEnd(page)}</h2>
      <p>{strings.listing.pastEndAbout(last)}</p>
      <button type="button" class="button primary" onClick={() => router.go({ page: last, item: null })}>
        {strings.listing.toLast}
      </button>
    </div>
  )
}
