import type { ComponentChildren } from 'preact'
import { Icon, type IconName } from '../components/icon.tsx'
import { useGallery } from '../gallery-context.ts'
import { strings } from '../strings.ts'

/** The name of the bucket, what is shown of it, and how. */
export function ListHead({ about, children }: { about: string; children?: ComponentChildren }) {
  const { tokenInfo, router, shownList, usage } = useGallery()
  const paged = router.page.value !== null
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
            chosen={!paged && view === 'grid'}
            onChoose={() => shownList.choose({ view: 'grid' })}
          />
          <Segment
            icon="list"
            label={strings.view.list}
            chosen={!paged && view === 'list'}
            onChoose={() => shownList.choose({ view: 'list' })}
          />
          <Segment
            icon="pages"
            label={strings.view.pages}
            chosen={paged}
            onChoose={() => router.go({ page: router.page.value ?? 1, item: null })}
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
