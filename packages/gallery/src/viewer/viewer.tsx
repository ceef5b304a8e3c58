import type { Media } from '@mediabucket/client'
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'
import { IconButton } from '../components/controls.tsx'
import { Icon } from '../components/icon.tsx'
import { Modal } from '../components/modal.tsx'
import { useGallery } from '../gallery-context.ts'
import { CopyLinks } from '../selection/copy-links.tsx'
import { downloadLink } from '../service/file-access.ts'
import { isPrivate } from '../service/urls.ts'
import { NoticeAnnouncer, NoticeList } from '../shell/notice-list.tsx'
import { strings } from '../strings.ts'
import { useCode } from '../use-code.ts'
import { Carousel } from './carousel.tsx'
import { itemsAround, knownList, reach } from './known-list.ts'

/** The viewer, open while the URL names an item. */
export function Viewer() {
  const { router, isShown } = useGallery()
  const id = router.item.value
  const seen = useRef(id)
  // At once, so that the next key acts on this file.
  useLayoutEffect(() => {
    if (id === null && seen.current !== null) focusTile(seen.current)
    seen.current = id
  }, [id])
  if (id === null || !isShown.value) return null
  return <ViewerDialog id={id} />
}

/** The browser would return the focus to the file that was opened first. */
function focusTile(id: string): void {
  const tile = document.querySelector<HTMLElement>(`[data-item="${CSS.escape(id)}"]`)
  tile?.focus({ preventScroll: true })
  tile?.scrollIntoView({ block: 'nearest' })
}

/** One item in full size, with steps to the other items. */
function ViewerDialog({ id }: { id: string }) {
  const { ids, isLoaded, position, previous, next } = useNavigation(id)
  useStepKeys(previous, next)
  const { mediaCache, router, deletion, connection } = useGallery()
  const [detailsOpen, setDetailsOpen] = useState(false)
  const status = useItemStatus(id, isLoaded)
  // After the deletion the viewer moves to the next item.
  const deleting = deletion.processed.value !== null && deletion.pending.value?.includes(id) === true
  const deleted = status === 'deleted' && !deleting
  const media = deleted ? null : mediaCache.get(id).value
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
              {strings.back}
            </button>
          </div>
        ) : media === null || (deleting && !isLoaded) ? (
          <p class="viewer-message" role="status">
            {strings.viewer.loading}
          </p>
        ) : (
          <Carousel id={id} ids={ids} onClose={close} />
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
      {detailsOpen && media && <DetailsPanel media={media} />}
      <NoticeList />
      <NoticeAnnouncer />
    </Modal>
  )
}

/** The properties of an item, when their code is loaded. */
function DetailsPanel({ media }: { media: Media }) {
  const code = useCode(() => import('./details.tsx'), 'details')
  if (code !== 'loading' && code !== 'failed') return <code.Details media={media} />
  return (
    <aside class="details" aria-label={strings.viewer.details}>
      {code === 'loading' ? (
        <p role="status">{strings.viewer.loading}</p>
      ) : (
        <p role="alert">{strings.notLoaded}</p>
      )}
    </aside>
  )
}

interface ViewerActionsProps {
  readonly media: Media
  readonly detailsOpen: boolean
  readonly onDetails: () => void
}

function ViewerActions({ media, detailsOpen, onDetails }: ViewerActionsProps) {
  const { sharing, deletion, canDelete } = useGallery()
  const link = downloadLink(media, sharing.saveFile)
  return (
    <div class="viewer-actions">
      <IconButton icon="info" label={strings.viewer.details} pressed={detailsOpen} onClick={onDetails} />
      <CopyLinks
        label={strings.viewer.copy}
        ids={() => [media.id]}
        isPrivate={isPrivate(media)}
        menu="viewer-links"
      />
      <a
        class="icon-button"
        href={link.href}
        download={link.download}
        onClick={link.onClick}
        aria-label={strings.viewer.download}
        title={strings.viewer.download}
      >
        <Icon name="download" />
      </a>
      {canDelete && (
        <IconButton
          icon="trash"
          label={strings.viewer.delete}
          onClick={() => void deletion.request([media.id])}
        />
      )}
    </div>
  )
}

/** Steps by arrow keys, also while the code of the slides, or a file, is loading. */
function useStepKeys(previous: (() => void) | null, next: (() => void) | null): void {
  useLayoutEffect(() => {
    function onKey(event: KeyboardEvent): void {
      if (!isStep(event)) return
      event.preventDefault()
      ;(event.key === 'ArrowRight' ? next : previous)?.()
    }
    document.addEventListener('keydown', onKey)
    return () => document.removeEventListener('keydown', onKey)
  })
}

/** Whether a key is an arrow to the side, of the viewer and not of the browser, of a field or of a dialog in front. */
function isStep({ key, altKey, metaKey }: KeyboardEvent): boolean {
  // With Alt or Cmd, browsers go back and forward.
  if (altKey || metaKey || (key !== 'ArrowLeft' && key !== 'ArrowRight')) return false
  const focused = document.activeElement
  if (focused?.closest('audio, video, input, select, textarea')) return false
  // When a focused text leaves the view, the focus moves to the body.
  const place = focused === document.body ? [...document.querySelectorAll('dialog[open]')].at(-1) : focused
  return place?.closest('.viewer') != null
}

interface Navigation {
  /** The items to swipe through: some around the open one, or the item alone if no others are known. */
  readonly ids: readonly string[]
  /** Whether the item is in the loaded part of the timeline. */
  readonly isLoaded: boolean
  /** The position of the item in the list, from 1, and the number of items; null if they are unknown. */
  readonly position: { readonly at: number; readonly of: number } | null
  /** Null if there is no previous item, or nothing around the item is known. */
  readonly previous: (() => void) | null
  /** Null if there is no next item, or nothing around the item is known. */
  readonly next: (() => void) | null
}

/** The position of an item in the timeline, and the steps to its neighbours. */
function useNavigation(id: string): Navigation {
  const { timeline } = useGallery()
  const swiped = useRef<readonly string[]>([])
  // The loaded items belong to another list.
  const loaded = timeline.outdated.value ? null : timeline.loaded.value
  if (loaded === null) swiped.current = []
  const part = {
    ids: loaded === null ? [] : timeline.ids.value,
    before: loaded?.before ?? 0,
    after: loaded?.after ?? 0,
  }
  const known = knownList(part, swiped.current, id)
  swiped.current = itemsAround(known.ids, swiped.current, id)
  const index = known.ids.indexOf(id)
  /** The index in the loaded part, or in its continuation on either side. */
  const at = index < 0 || known.loadedAt === null ? null : index - known.loadedAt

  const nearStart = at !== null && at < reach
  const nearEnd = at !== null && at >= part.ids.length - reach
  useEffect(() => {
    if (nearStart) void timeline.extend(false)
  }, [nearStart, loaded, timeline])
  useEffect(() => {
    if (nearEnd) void timeline.extend(true)
  }, [nearEnd, loaded, timeline])

  const neighbourAt = (place: number, hasMore: boolean): Neighbour => {
    const neighbour = known.ids[place]
    if (index >= 0 && neighbour !== undefined) return { id: neighbour }
    return at !== null && hasMore ? { id: null } : null
  }
  const steps = useSteps(id, neighbourAt(index - 1, part.before > 0), neighbourAt(index + 1, part.after > 0))
  const matches = timeline.matches.value
  const total = matches?.isExact ? matches.count : timeline.total.value
  return {
    ids: index < 0 ? [id] : swiped.current,
    isLoaded: part.ids.includes(id),
    position: at === null || total === null ? null : { at: part.before + at + 1, of: total },
    ...steps,
  }
}

/** The id of a neighbour is null until it is loaded. */
type Neighbour = { readonly id: string | null } | null

/** Steps to the neighbours of the open item. Those to items that are not loaded yet are taken when they are. */
function useSteps(open: string, before: Neighbour, after: Neighbour): Pick<Navigation, 'previous' | 'next'> {
  const { router } = useGallery()
  /** Steps from an item on that were not taken yet; positive ones are forward. */
  const waiting = useRef({ from: open, steps: 0 })
  if (waiting.current.from !== open) waiting.current = { from: open, steps: 0 }
  const take = () => {
    const { steps } = waiting.current
    const neighbour = steps > 0 ? after : before
    if (steps === 0 || neighbour?.id === null) return
    waiting.current = { from: neighbour?.id ?? open, steps: neighbour ? steps - Math.sign(steps) : 0 }
    if (neighbour) router.show(neighbour.id)
  }
  useLayoutEffect(take)
  const stepBy = (steps: number) => () => {
    waiting.current.steps += steps
    take()
  }
  return { previous: before && stepBy(-1), next: after && stepBy(1) }
}

type ItemStatus = 'checking' | 'exists' | 'deleted' | 'unknown'

/** Whether an item exists. Checked when it is opened, when it enters or leaves the loaded part, and when the connection is restored. */
function useItemStatus(id: string, isLoaded: boolean): ItemStatus {
  const { mediaCache, connection } = useGallery()
  const [result, setResult] = useState<{ readonly id: string; readonly status: ItemStatus } | null>(null)
  useEffect(() => {
    let unmounted = false
    const check = async () => {
      const exists = await mediaCache.check(id)
      const status = exists === null ? 'unknown' : exists ? 'exists' : 'deleted'
      if (!unmounted) setResult({ id, status })
    }
    void check()
    return () => {
      unmounted = true
    }
  }, [id, isLoaded, mediaCache, connection.lost.value])
  return result?.id === id ? result.status : 'checking'
}
