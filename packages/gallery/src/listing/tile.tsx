import { useEffect } from 'preact/hooks'
import { Icon } from '../components/icon.tsx'
import { formatSize } from '../format/size.ts'
import { useGallery } from '../gallery.ts'
import { formatHash } from '../routing/hash-route.ts'
import { strings } from '../strings.ts'
import { Thumbnail } from './thumbnail.tsx'

/** One item: a link that opens it and a checkbox that selects it. */
export function Tile({ id }: { id: string }) {
  const { mediaCache, selection, listing, router, connection } = useGallery()
  // Loaded again when the connection is restored, if it failed before.
  useEffect(() => void mediaCache.load(id), [id, mediaCache, connection.lost.value])
  const media = mediaCache.get(id).value
  const name = media === null ? '' : (media.filename ?? strings.unnamed)
  const selected = selection.ids.value.has(id)
  const route = { page: router.page.value, item: id }

  const select = (extend: boolean) => {
    if (extend) selection.extendTo(id, listing.ids.value)
    else selection.toggle(id)
  }

  return (
    <li class={selected ? 'tile selected' : 'tile'}>
      <a
        class="tile-open"
        href={formatHash(route)}
        data-item={id}
        draggable={false}
        onClick={(event) => {
          event.preventDefault()
          const selects = event.shiftKey || event.ctrlKey || event.metaKey || selection.count.value > 0
          if (selects) select(event.shiftKey)
          else router.go(route)
        }}
      >
        <Thumbnail id={id} media={media} />
        <span class="tile-caption">
          {media === null ? (
            <span class="skeleton line">
              <span class="off-screen">{strings.viewer.loading}</span>
            </span>
          ) : (
            <>
              <span class="tile-name" title={name}>
                {name}
              </span>
              <span class="tile-size">{formatSize(media.size)}</span>
            </>
          )}
        </span>
      </a>
      <label class="tile-check">
        <input
          type="checkbox"
          checked={selected}
          aria-label={strings.selection.select(name || strings.unnamed)}
          onClick={(event) => {
            // The selection sets `checked`, because a click with Shift may select several items.
            event.stopPropagation()
            select(event.shiftKey)
          }}
        />
        <span class="tick">
          <Icon name="check" size={16} />
        </span>
      </label>
    </li>
  )
}
