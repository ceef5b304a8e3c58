import type { Page } from '@mediabucket/client'
import { useGallery } from '../gallery-context.ts'
import { strings } from '../strings.ts'
import { Tile } from '../tiles/tile.tsx'
import { ListHead } from './list-head.tsx'
import { EmptyBucket, FailedPage, PagePastEnd, PageSkeleton } from './page-states.tsx'

/** The heading of a numbered page, and below it the files of the page or the reason why there are none. */
export function ListingView() {
  const { listing, router } = useGallery()
  const page = listing.page.value
  const loading = listing.loading.value
  const error = listing.error.value
  const requested = router.page.value ?? 1
  const current = page !== null && page.current_page === requested ? page : null
  return (
    <>
      <ListHead about={error === null && page !== null ? rangeOf(page) : ''} />
      <p class="off-screen" role="status">
        {loading ? strings.listing.loading : current && strings.listing.loaded(requested, current.last_page)}
      </p>
      {error !== null && !loading ? (
        <FailedPage reason={error} onRetry={() => void listing.reload()} />
      ) : page === null ? (
        <PageSkeleton />
      ) : page.total === 0 ? (
        <EmptyBucket />
      ) : page.data.length === 0 && current ? (
        <PagePastEnd page={requested} last={page.last_page} />
      ) : (
        <Grid stale={loading && current === null} />
      )}
    </>
  )
}

/** The files of the page; `stale` while another page is loading. */
function Grid({ stale }: { stale: boolean }) {
  const { listing, selection } = useGallery()
  const selecting = selection.count.value > 0
  return (
    <ul
      id="files"
      tabIndex={-1}
      class={selecting ? 'grid selecting' : 'grid'}
      aria-label={strings.listing.grid}
      aria-busy={stale}
      data-stale={stale}
    >
      {listing.ids.value.map((id) => (
        <Tile key={id} id={id} />
      ))}
    </ul>
  )
}

function rangeOf({ from, to, total }: Page): string {
  if (from !== null && to !== null) return strings.listing.range(from, to, total)
  return total > 0 ? strings.files(total) : ''
}
