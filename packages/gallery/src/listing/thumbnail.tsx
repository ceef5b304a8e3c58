import type { Media } from '@mediabucket/client'
import { useEffect, useState } from 'preact/hooks'
import { kindOf, shortType } from '../format/kind.ts'
import { useGallery } from '../gallery.ts'
import { Icon } from '../parts/icon.tsx'
import { bytesUrl } from '../service/address.ts'

/** Of these the service makes smaller pictures (docs/interface.md V3). */
const pictured = /^image\/(?:jpeg|png|gif|webp|tiff|avif)$/

/** Milliseconds after which a picture is asked for once more: the service may have had too much to do. */
const secondTry = 4000

/** The picture of an item; the icon of its kind where it has none. */
export function Thumbnail({ id, media }: { id: string; media: Media | null }) {
  const [state, setState] = useState<'coming' | 'shown' | 'none'>('coming')
  const [tries, setTries] = useState(1)
  const { lost } = useGallery().connection
  useEffect(() => {
    // What failed while the service was gone is tried anew when it is back.
    if (!lost.value && state === 'none') setState('coming')
  }, [lost.value])
  useEffect(() => {
    if (state !== 'none' || tries > 1) return
    const timer = setTimeout(() => {
      setTries(2)
      setState('coming')
    }, secondTry)
    return () => clearTimeout(timer)
  }, [state, tries])
  if (media === null) return <span class="tile-picture skeleton" />
  const kind = kindOf(media.content_type)
  if (!pictured.test(media.content_type) || state === 'none') {
    return (
      <span class={`tile-picture kind ${kind}`}>
        <Icon name={kind} size={44} />
        <span class="tile-type" aria-hidden="true">
          {shortType(media.filename, media.content_type)}
        </span>
      </span>
    )
  }
  return (
    <span class={state === 'shown' ? 'tile-picture' : 'tile-picture skeleton'}>
      <img
        src={bytesUrl(id, 'thumb')}
        alt=""
        loading="lazy"
        decoding="async"
        draggable={false}
        data-state={state}
        onLoad={() => setState('shown')}
        onError={() => setState('none')}
      />
    </span>
  )
}
