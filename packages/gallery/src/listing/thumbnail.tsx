import type { Media } from '@mediabucket/client'
import { useEffect, useRef, useState } from 'preact/hooks'
import { Icon } from '../components/icon.tsx'
import { kindOf, shortType } from '../format/kind.ts'
import { useGallery } from '../gallery.ts'
import { thumbnailDelay } from '../service/thumbnail-retry.ts'
import { bytesUrl } from '../service/urls.ts'
import { strings } from '../strings.ts'

/** Of these the service makes smaller pictures (docs/interface.md V3). */
const pictured = /^image\/(?:jpeg|png|gif|webp|tiff|avif)$/

/** A picture that fails more often is taken for one that cannot be shown. */
const mostTries = 5

/** The picture of an item; the icon of its kind where it has none. */
export function Thumbnail({ id, media }: { id: string; media: Media | null }) {
  const [state, setState] = useState<'coming' | 'shown' | 'waiting' | 'none'>('coming')
  const tries = useRef(1)
  const { lost } = useGallery().connection
  const url = bytesUrl(id, 'thumb')
  useEffect(() => {
    // What failed while the service was gone is tried again when it is back.
    if (lost.value || state !== 'none') return
    tries.current = 1
    setState('coming')
  }, [lost.value])
  useEffect(() => {
    if (state !== 'waiting') return
    let timer: ReturnType<typeof setTimeout> | undefined
    let left = false
    const wait = async () => {
      const delay = tries.current < mostTries ? await thumbnailDelay(url) : null
      if (left) return
      tries.current += 1
      if (delay === null) setState('none')
      else timer = setTimeout(() => setState('coming'), delay)
    }
    void wait()
    return () => {
      left = true
      clearTimeout(timer)
    }
  }, [state, url])
  if (media === null) return <span class="tile-picture skeleton" />
  const kind = kindOf(media.content_type)
  if (!pictured.test(media.content_type) || state === 'none') {
    return (
      <span class={`tile-picture kind ${kind}`}>
        <Icon name={kind} size={44} />
        <span class="tile-type" aria-hidden="true">
          {shortType(media.filename, media.content_type)}
        </span>
        {state === 'none' && <span class="tile-fault">{strings.listing.noThumbnail}</span>}
      </span>
    )
  }
  if (state === 'waiting') return <span class="tile-picture skeleton" />
  return (
    <span class={state === 'shown' ? 'tile-picture' : 'tile-picture skeleton'}>
      <img
        src={url}
        alt=""
        loading="lazy"
        decoding="async"
        draggable={false}
        data-state={state}
        onLoad={() => setState('shown')}
        onError={() => setState('waiting')}
      />
    </span>
  )
}
