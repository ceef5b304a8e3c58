import { useEffect } from 'preact/hooks'
import { Icon } from '../components/icon.tsx'
import { formatSize } from '../format/size.ts'
import { useGallery } from '../gallery.ts'
import { formatHash } from '../routing/hash-route.ts'
import { strings } from '../strings.ts'
import { Thumbnail } from './thumbnail.tsx'

/** One item: a link that opens it, and a box that selects it. */
export function Tile({ id }: { id: string }) {
  const { items, selection, listing, router, connection } = useGallery()
  // What could not be had while the service was gone is asked for again when it is back.
  useEffect(() => void items.load(id), [id, items, connection.lost.value])
  const media = items.of(id).value
  const name = media === null ? '' : (media.filename ?? strings.unnamed)
  const selected = selection.ids.value.has(id)
  const route = { page: router.page.value, item: id }

  const pick = (extend: boolean) => {
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
          const picking = event.shiftKey || event.ctrlKey || event.metaKey || selection.count.value > 0
          if (picking) pick(event.shiftKey)
          else router.go(route)
        }}
      >
        <Thumbnail id={id} media={media} />
        <span class="tile-words">
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
            // The signal decides what is ticked, so that a range can be.
            event.stopPropagation()
            pick(event.shiftKey)
          }}
        />
        <span class="tick">
          <Icon name="check" size={16} />
        </span>
      </label>
    </li>
  )
}
