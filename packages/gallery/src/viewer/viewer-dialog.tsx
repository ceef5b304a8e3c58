import { useState } from 'preact/hooks'
import { Icon } from '../components/icon.tsx'
import { IconButton } from '../components/icon-button.tsx'
import { Modal } from '../components/modal.tsx'
import { useGallery } from '../gallery.ts'
import { NoticeAnnouncer, NoticeList } from '../shell/notice-list.tsx'
import { strings } from '../strings.ts'
import { Carousel } from './carousel.tsx'
import { Details } from './details.tsx'
import { useItemStatus } from './use-item-status.ts'
import { useNavigation } from './use-navigation.ts'
import { ViewerActions } from './viewer-actions.tsx'

/** One item, large; the others of its page are a key or a swipe away. */
export function ViewerDialog({ id }: { id: string }) {
  const { items, listing, router, deletion, connection } = useGallery()
  const [details, showDetails] = useState(false)
  const { shown, row, index, previous, next } = useNavigation(id)
  const presence = useItemStatus(shown, index >= 0)
  // Its neighbour takes its place in a moment.
  const leaving = deletion.done.value !== null && deletion.asked.value?.includes(shown) === true
  const gone = presence === 'gone' && !leaving
  const media = gone ? null : items.of(shown).value
  const lost = media === null && presence === 'unknown' && !connection.lost.value
  const page = listing.page.value
  const close = () => router.replace({ page: router.page.value, item: null })
  const name = media === null ? '' : (media.filename ?? strings.unnamed)
  return (
    <Modal
      class={details ? 'viewer with-details' : 'viewer'}
      label={gone ? strings.viewer.gone : strings.viewer.label(name)}
      onCancel={close}
    >
      <header class="viewer-bar">
        <IconButton icon="close" label={strings.close} onClick={close} />
        <p class="viewer-title" aria-live="polite">
          <strong title={name}>{name}</strong>
          {page?.from && index >= 0 && (
            <span class="viewer-position">{strings.viewer.position(page.from + index, page.total)}</span>
          )}
        </p>
      </header>
      {media && <ViewerActions media={media} details={details} onDetails={() => showDetails(!details)} />}
      <div class="viewer-stage">
        {gone || lost ? (
          <div class="viewer-message">
            <Icon name={gone ? 'trash' : 'alert'} size={48} />
            <p role="status">{gone ? strings.viewer.gone : strings.viewer.unknown}</p>
            <button type="button" class="button primary" onClick={close}>
              {strings.viewer.back}
            </button>
          </div>
        ) : row === null || media === null || (leaving && index < 0) ? (
          <p class="viewer-message" role="status">
            {strings.viewer.loading}
          </p>
        ) : (
          <Carousel
            id={shown}
            row={row}
            onClose={close}
            onPast={(forward) => (forward ? next : previous)?.()}
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
      {details && media && <Details media={media} />}
      <NoticeList />
      <NoticeAnnouncer />
    </Modal>
  )
}
