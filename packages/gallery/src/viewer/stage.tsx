import { useEffect, useRef, useState } from 'preact/hooks'
import { useGallery } from '../gallery.ts'
import { strings } from '../strings.ts'
import type { Swipe } from './swipe.tsx'

interface StageProps {
  readonly id: string
  readonly onClose: () => void
  /** Somebody goes on from the last item of the page, or back from its first. */
  readonly onPast: (forward: boolean) => void
}

/** Holds the pictures that are swiped through; what does that is loaded with the first of them. */
export function Stage({ id, onClose, onPast }: StageProps) {
  const { listing, items, router, loadSwipe } = useGallery()
  const place = useRef<HTMLDivElement>(null)
  const swipe = useRef<Swipe | null>(null)
  const [state, setState] = useState<'coming' | 'shown' | 'failed'>('coming')
  const ids = listing.ids.value
  const wanted = useRef(id)
  wanted.current = id
  const past = useRef(onPast)
  past.current = onPast

  useEffect(() => {
    let over = false
    const open = async () => {
      const [{ openSwipe }, ...media] = await Promise.all([loadSwipe(), ...ids.map(items.load)])
      if (over || place.current === null) return
      swipe.current = openSwipe({
        place: place.current,
        media,
        start: Math.max(0, ids.indexOf(wanted.current)),
        onMove(index) {
          const item = ids[index]
          if (item && item !== wanted.current) router.replace({ page: router.page.value, item })
        },
        onPast: (forward) => past.current(forward),
        onClose,
      })
      setState('shown')
    }
    open().catch(() => setState('failed'))
    return () => {
      over = true
      swipe.current?.close()
      swipe.current = null
    }
    // The ids stand for the page: another page, or one with an item less, is another row of pictures.
  }, [ids.join()])

  useEffect(() => swipe.current?.moveTo(ids.indexOf(id)), [id])

  return (
    <div class="swipe-place" ref={place}>
      {state !== 'shown' && (
        <p class="viewer-message" role="status">
          {state === 'coming' ? strings.viewer.loading : strings.viewer.notLoaded}
        </p>
      )}
    </div>
  )
}
