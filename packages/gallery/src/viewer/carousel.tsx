import { useEffect, useRef, useState } from 'preact/hooks'
import { useGallery } from '../gallery.ts'
import { strings } from '../strings.ts'
import type { SlideView } from './photo-swipe.tsx'

interface CarouselProps {
  readonly id: string
  /** What is swiped through; the item is among it. */
  readonly row: readonly string[]
  readonly onClose: () => void
  /** Somebody goes on from the last item of the page, or back from its first. */
  readonly onPast: (forward: boolean) => void
}

/** Holds the pictures that are swiped through; what does that is loaded with the first of them. */
export function Carousel({ id, row, onClose, onPast }: CarouselProps) {
  const { items, router, loadPhotoSwipe } = useGallery()
  const place = useRef<HTMLDivElement>(null)
  const swipe = useRef<SlideView | null>(null)
  const [state, setState] = useState<'coming' | 'shown' | 'failed'>('coming')
  const wanted = useRef(id)
  wanted.current = id
  const past = useRef(onPast)
  past.current = onPast

  useEffect(() => {
    let over = false
    const open = async () => {
      const [{ openPhotoSwipe }, ...media] = await Promise.all([loadPhotoSwipe(), ...row.map(items.load)])
      const start = row.indexOf(wanted.current)
      if (over || place.current === null || start < 0) return
      swipe.current = openPhotoSwipe({
        place: place.current,
        media,
        start,
        onMove(index) {
          const item = row[index]
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
    // Another page, or one with an item less, is another row of pictures.
  }, [row.join()])

  useEffect(() => swipe.current?.moveTo(row.indexOf(id)), [id])

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
