import type { ComponentChildren } from 'preact'
import { FileButton } from '../components/controls.tsx'
import { Icon, type IconName } from '../components/icon.tsx'
import { LoadError } from '../components/section.tsx'
import { useGallery } from '../gallery-context.ts'
import { strings } from '../strings.ts'
import { AskButton } from '../tokens/ask-button.tsx'
import { Filters } from './filters.tsx'
import { isByName, isDescending, isFiltered, reverse } from './shown-list.ts'
import { TimelineGrid } from './timeline-grid.tsx'

/** The whole bucket as one list that loads items as it is scrolled, or the reason why there is none. */
export function TimelineView() {
  const { timeline, shownList, usage } = useGallery()
  const filtered = isFiltered(shownList.filter.value)
  const loaded = timeline.loaded.value
  const loading = timeline.loading.value
  const error = timeline.error.value
  // A list by name or by the time of cameras has no positions, but all files.
  const total = timeline.total.value ?? (filtered ? null : (usage.bucket.value?.items ?? null))
  const matches = timeline.matches.value
  // While a new list is loading, the number belongs to the previous list.
  const found = matches === null || loading || error !== null ? '' : strings.filter.matches(matches)
  const about = total === null || error !== null ? (matches?.count ? found : '') : strings.files(total)
  // While a new list is loading, the loaded items belong to the previous filter.
  const isEmpty = !filtered && !loading && error === null && loaded?.items.length === 0
  return (
    <>
      <ListHead about={about}>
        {!isEmpty && (
          <>
            <AskButton small />
            <OrderButton />
          </>
        )}
      </ListHead>
      {!isEmpty && <Filters />}
      <p class="off-screen" role="status">
        {loading ? strings.listing.loading : error === null && (found || strings.timeline.loaded)}
      </p>
      {error !== null && !loading ? (
        <LoadError title={strings.listing.failed} reason={error} onRetry={() => void timeline.refresh()} />
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
  const isReversed = isDescending(order)
  const label = isByName(order)
    ? strings.timeline.names[isReversed ? 'descending' : 'ascending']
    : strings.timeline[isReversed ? 'newestFirst' : 'oldestFirst']
  return (
    <button
      type="button"
      class="button small order"
      title={strings.timeline.switchOrder}
      onClick={() => shownList.choose({ order: reverse(order) })}
    >
      <Icon name={isReversed ? 'newest' : 'oldest'} />
      <span class="off-screen-narrow">{label}</span>
    </button>
  )
}

/** The name of the bucket, what is shown of it, and how. */
function ListHead({ about, children }: { about: string; children?: ComponentChildren }) {
  const { tokenInfo, shownList, usage } = useGallery()
  const view = shownList.view.value
  return (
    <div class="listing-head">
      <h1 title={tokenInfo.bucket}>{tokenInfo.bucket}</h1>
      <p class="muted">
        {usage.bucket.value?.private && (
          <span class="private" title={strings.listing.privateHint}>
            <Icon name="lock" size={16} />
            {strings.listing.private}
          </span>
        )}
        {about}
      </p>
      <div class="listing-tools">
        {children}
        <fieldset class="segments">
          <legend class="off-screen">{strings.view.label}</legend>
          <Segment
            icon="grid"
            label={strings.view.grid}
            chosen={view === 'grid'}
            onChoose={() => shownList.choose({ view: 'grid' })}
          />
          <Segment
            icon="list"
            label={strings.view.list}
            chosen={view === 'list'}
            onChoose={() => shownList.choose({ view: 'list' })}
          />
        </fieldset>
      </div>
    </div>
  )
}

interface SegmentProps {
  readonly icon: IconName
  readonly label: string
  readonly chosen: boolean
  readonly onChoose: () => void
}

function Segment({ icon, label, chosen, onChoose }: SegmentProps) {
  return (
    <button
      type="button"
      class="segment"
      aria-pressed={chosen}
      aria-label={label}
      title={label}
      onClick={onChoose}
    >
      <Icon name={icon} />
    </button>
  )
}

function PageSkeleton() {
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

function EmptyBucket() {
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
          <AskButton />
        </div>
      )}
    </div>
  )
}
