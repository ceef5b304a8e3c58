import { Icon } from '../components/icon.tsx'
import { useGallery } from '../gallery-context.ts'
import { ListHead } from '../listing/list-head.tsx'
import { EmptyBucket, FailedPage, PageSkeleton } from '../listing/page-states.tsx'
import { strings } from '../strings.ts'
import { Filters } from './filters.tsx'
import { isFiltered, reverse } from './shown-list.ts'
import { TimelineGrid } from './timeline-grid.tsx'

/** The whole bucket as one list that loads items as it is scrolled, or the reason why there is none. */
export function TimelineView() {
  const { timeline, shownList } = useGallery()
  const loaded = timeline.loaded.value
  const loading = timeline.loading.value
  const error = timeline.error.value
  const total = timeline.total.value
  const matches = timeline.matches.value
  // While a new list is loading, the number belongs to the previous list.
  const found = matches === null || loading || error !== null ? '' : strings.filter.matches(matches)
  const about = total === null || error !== null ? (matches?.count ? found : '') : strings.files(total)
  const filtered = isFiltered(shownList.filter.value)
  // While a new list is loading, the loaded items belong to the previous filter.
  const isEmpty = !filtered && !loading && error === null && loaded?.items.length === 0
  return (
    <>
      <ListHead about={about}>{!isEmpty && <OrderButton />}</ListHead>
      {!isEmpty && <Filters />}
      <p class="off-screen" role="status">
        {loading ? strings.listing.loading : error === null && (found || strings.timeline.loaded)}
      </p>
      {error !== null && !loading ? (
        <FailedPage reason={error} onRetry={() => void timeline.refresh()} />
      ) : loaded === null ? (
        <PageSkeleton />
      ) : isEmpty ? (
        <EmptyBucket />
      ) : loaded.items.length === 0 ? (
        <NoMatch />
      ) : (
        <TimelineGrid list={shownList.view.value === 'list'} />
      )}
    </>
  )
}

function NoMatch() {
  return (
    <div class="state">
      <Icon name="search" size={40} />
      <h2>{strings.filter.none}</h2>
      <p>{strings.filter.noneHint}</p>
    </div>
  )
}

function OrderButton() {
  const { shownList } = useGallery()
  const order = shownList.order.value
  const label = order === 'newest' ? strings.timeline.newestFirst : strings.timeline.oldestFirst
  return (
    <button
      type="button"
      class="button small order"
      title={strings.timeline.switchOrder}
      onClick={() => shownList.choose({ order: reverse(order) })}
    >
      <Icon name={order} />
      <span class="off-screen-narrow">{label}</span>
    </button>
  )
}
