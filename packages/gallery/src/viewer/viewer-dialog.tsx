import { useState } from 'preact/hooks'
import { useGallery } from '../gallery.ts'
import { IconButton } from '../parts/icon-button.tsx'
import { Modal } from '../parts/modal.tsx'
import { NoticeList, SpokenNotices } from '../shell/notice-list.tsx'
import { strings } from '../strings.ts'
import { Details } from './details.tsx'
import { Stage } from './stage.tsx'
import { useWalk } from './use-walk.ts'
import { ViewerActions } from './viewer-actions.tsx'

/** One item, large; the others of the bucket are a key or a swipe away. */
export function ViewerDialog({ id }: { id: string }) {
  const { items, listing, router } = useGallery()
  const [details, showDetails] = useState(false)
  const { index, previous, next } = useWalk(id)
  const media = items.of(id).value
  const page = listing.page.value
  const close = () => router.replace({ page: router.page.value, item: null })
  const name = media === null ? '' : (media.filename ?? strings.unnamed)
  const lost = index === -1 && !listing.loading.value
  return (
    <Modal
      class={details ? 'viewer with-details' : 'viewer'}
      label={strings.viewer.label(name)}
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
        {lost ? (
          <p class="viewer-message" role="status">
            {strings.viewer.gone}
          </p>
        ) : (
          <Stage id={id} onClose={close} onPast={(forward) => (forward ? next : previous)?.()} />
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
      <SpokenNotices />
    </Modal>
  )
}
