import { useEffect, useRef, useState } from 'preact/hooks'
import { IconButton } from '../components/controls.tsx'
import { Icon } from '../components/icon.tsx'
import { Modal } from '../components/modal.tsx'
import { useGallery } from '../gallery-context.ts'
import { NoticeAnnouncer, NoticeList } from '../shell/notice-list.tsx'
import { strings } from '../strings.ts'
import { Carousel } from './carousel.tsx'
import { Details } from './details.tsx'
import { useItemStatus } from './use-item-status.ts'
import { type Navigation, usePageNavigation } from './use-page-navigation.ts'
import { useTimelineNavigation } from './use-timeline-navigation.ts'
import { ViewerActions } from './viewer-actions.tsx'

/** The viewer, open while the URL names an item. */
export function Viewer() {
  const { router, isShown } = useGallery()
  const id = router.item.value
  const seen = useRef(id)
  useEffect(() => {
    if (id === null && seen.current !== null) focusTile(seen.current)
    seen.current = id
  }, [id])
  if (id === null || !isShown.value) return null
  return router.page.value === null ? <TimelineViewer id={id} /> : <PageViewer id={id} />
}

/** The browser would return the focus to the file that was opened first. */
function focusTile(id: string): void {
  const tile = document.querySelector<HTMLElement>(`[data-item="${CSS.escape(id)}"]`)
  tile?.focus({ preventScroll: true })
  tile?.scrollIntoView({ block: 'nearest' })
}

function TimelineViewer({ id }: { id: string }) {
  return <ViewerDialog {...useTimelineNavigation(id)} />
}

function PageViewer({ id }: { id: string }) {
  return <ViewerDialog {...usePageNavigation(id)} />
}

/** One item in full size, with steps to the other items. */
function ViewerDialog({ shown, ids, index, position, previous, next }: Navigation) {
  const { mediaCache, router, deletion, connection } = useGallery()
  const [detailsOpen, setDetailsOpen] = useState(false)
  const status = useItemStatus(shown, index >= 0)
  // After the deletion the viewer moves to the next item.
  const deleting = deletion.processed.value !== null && deletion.pending.value?.includes(shown) === true
  const deleted = status === 'deleted' && !deleting
  const media = deleted ? null : mediaCache.get(shown).value
  const failed = media === null && status === 'unknown' && !connection.lost.value
  const close = () => router.show(null)
  const name = media === null ? '' : (media.filename ?? strings.unnamed)
  return (
    <Modal
      class={detailsOpen ? 'viewer with-details' : 'viewer'}
      label={deleted ? strings.viewer.deleted : strings.viewer.label(name)}
      onCancel={close}
    >
      <header class="viewer-bar">
        <IconButton icon="close" label={strings.close} onClick={close} />
        <p class="viewer-title" aria-live="polite">
          <strong title={name}>{name}</strong>
          {position && (
            <span class="viewer-position">{strings.viewer.position(position.at, position.of)}</span>
          )}
        </p>
      </header>
      {media && (
        <ViewerActions
          media={media}
          detailsOpen={detailsOpen}
          onDetails={() => setDetailsOpen(!detailsOpen)}
        />
      )}
      <div class="viewer-stage">
        {deleted || failed ? (
          <div class="viewer-message">
            <Icon name={deleted ? 'trash' : 'alert'} size={48} />
            <p role="status">{deleted ? strings.viewer.deleted : strings.viewer.failed}</p>
            <button type="button" class="button primary" onClick={close}>
              {strings.viewer.back}
            </button>
          </div>
        ) : ids === null || media === null || (deleting && index < 0) ? (
          <p class="viewer-message" role="status">
            {strings.viewer.loading}
          </p>
        ) : (
          <Carousel
            id={shown}
            ids={ids}
            onClose={close}
            onPastEnd={(forward) => (forward ? next : previous)?.()}
          />
        )}
        {previous && (
          <IconButton
            class="viewer-step previous"
            icon="previous"
            label={strings.viewer.previous}
            onClick={previous}
          />
        )}
        {next && (
          <IconButton class="viewer-step next" icon="next" label={strings.viewer.next} onClick={next} />
        )}
      </div>
      {detailsOpen && media && <Details media={media} />}
      <NoticeList />
      <NoticeAnnouncer />
    </Modal>
  )
}
