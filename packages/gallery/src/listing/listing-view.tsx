import type { Page } from '@mediabucket/client'
import { useGallery } from '../gallery.ts'
import { strings } from '../strings.ts'
import { EmptyBucket } from './empty-bucket.tsx'
import { Grid } from './grid.tsx'
import { FailedPage, PageSkeleton, PastEnd } from './page-states.tsx'

/** The heading, and below it the page or why there is none. */
export function ListingView() {
  const { about, listing, router } = useGallery()
  const page = listing.page.value
  const loading = listing.loading.value
  const fault = listing.fault.value
  const wanted = router.page.value
  const current = page !== null && page.current_page === wanted ? page : null
  return (
    <>
      <div class="listing-head">
        <h1>{about.bucket}</h1>
        <p class="muted">{fault === null && page !== null && countOf(page)}</p>
      </div>
      <p class="off-screen" role="status">
        {loading ? strings.listing.loading : current && strings.listing.loaded(wanted, current.last_page)}
      </p>
      {fault !== null && !loading ? (
        <FailedPage reason={fault} />
      ) : page === null ? (
        <PageSkeleton />
      ) : page.total === 0 ? (
        <EmptyBucket />
      ) : page.data.length === 0 && current ? (
        <PastEnd page={wanted} last={page.last_page} />
      ) : (
        <Grid stale={loading && current === null} />
      )}
    </>
  )
}

function countOf({ from, to, total }: Page): string {
  if (from !== null && to !== null) return strings.listing.range(from, to, total)
  return total > 0 ? strings.files(total) : ''
}
