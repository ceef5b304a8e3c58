import type { Media } from '@mediabucket/client'
import type { CSSProperties } from 'preact'
import { useEffect } from 'preact/hooks'
import { Icon } from '../components/icon.tsx'
import { formatDuration, formatSize, formatTime, kindOf } from '../format.ts'
import { useGallery } from '../gallery-context.ts'
import { strings } from '../strings.ts'
import { Thumbnail } from './thumbnail.tsx'
import { useLongPress } from './use-long-press.ts'

interface TileProps {
  readonly id: string
  /** Whether to show the time too. */
  readonly detailed?: boolean
  readonly tabIndex?: number
  readonly style?: CSSProperties
}

/** One item: a link that opens it and a checkbox that selects it. */
export function Tile({ id, detailed = false, tabIndex = 0, style }: TileProps) {
  const { mediaCache, selection, selectMany, router, connection } = useGallery()
  // Loaded again when the connection is restored, if it failed before.
  useEffect(() => void mediaCache.load(id), [id, mediaCache, connection.lost.value])
  const media = mediaCache.get(id).value
  const name = media === null ? '' : (media.filename ?? strings.unnamed)
  const selected = selection.ids.value.has(id)
  const route = { item: id }

  const select = (extend: boolean) => {
    if (extend) void selectMany.extendTo(id)
    else selection.toggle(id)
  }

  const longPress = useLongPress(() => selection.toggle(id))

  return (
    <li class={selected ? 'tile selected' : 'tile'} data-id={id} style={style} {...longPress}>
      <a
        class="tile-open"
        href={router.hashOf(route)}
        data-item={id}
        draggable={false}
        tabIndex={tabIndex}
        onClick={(event) => {
          event.preventDefault()
          const selects = event.shiftKey || event.ctrlKey || event.metaKey || selection.count.value > 0
          if (selects) select(event.shiftKey)
          else router.go(route)
        }}
        onKeyDown={(event) => {
          // Unlike a click, also while files are selected.
          if (event.key === 'Enter' && !event.ctrlKey && !event.metaKey && !event.shiftKey) {
            event.preventDefault()
            if (!event.repeat) router.go(route)
          }
          if (event.key !== ' ') return
          // Otherwise the page scrolls.
          event.preventDefault()
          if (!event.repeat) select(event.shiftKey)
        }}
      >
        <Thumbnail media={media} />
        {media !== null && <DurationBadge media={media} />}
        <span class="tile-caption">
          {media === null ? (
            <span class="skeleton line">
              <span class="off-screen">{strings.viewer.loading}</span>
            </span>
          ) : (
            <>
              <MiddleName class="tile-name" name={name} />
              {detailed && <time dateTime={media.created_at}>{formatTime(media.created_at)}</time>}
              <span class="tile-size">{formatSize(media.size)}</span>
            </>
          )}
        </span>
      </a>
      <label class="tile-check">
        <input
          type="checkbox"
          checked={selected}
          tabIndex={tabIndex}
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

/** Marks a video, or another file with a duration, on its tile. */
function DurationBadge({ media }: { media: Media }) {
  const { duration, content_type } = media
  const isKnown = typeof duration === 'number'
  if (!isKnown && kindOf(content_type) !== 'video') return null
  return (
    <span class="tile-duration">
      {isKnown && <time dateTime={`PT${Math.round(duration)}S`}>{formatDuration(duration)}</time>}
      <Icon name="play" size={14} />
    </span>
  )
}

/** The end of a name that is always shown: usually a number and the extension. Characters. */
const endLength = 9
/** Shorter names are shortened at the end. Characters. */
const shortest = 15

/** A name that is shortened in the middle if there is not enough space. Screen readers read the whole name. */
export function MiddleName({ name, class: extra = '' }: { name: string; class?: string }) {
  const characters = [...name]
  if (characters.length < shortest)
    return (
      <span class={`short-name ${extra}`} title={name}>
        {name}
      </span>
    )
  return (
    <span class={`middle-name ${extra}`} title={name}>
      <span class="whole-name">{name}</span>
      <span class="middle-name-start" aria-hidden="true">
        {characters.slice(0, -endLength).join('')}
      </span>
      <span class="middle-name-end" aria-hidden="true">
        {characters.slice(-endLength).join('')}
      </span>
    </span>
  )
}
