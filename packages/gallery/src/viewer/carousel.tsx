import { useLayoutEffect, useRef, useState } from 'preact/hooks'
import { useGallery } from '../gallery-context.ts'
import { strings } from '../strings.ts'
import type { SlideView } from './photo-swipe.tsx'

interface CarouselProps {
  readonly id: string
  /** The items to swipe through, `id` among them. */
  readonly ids: readonly string[]
  readonly onClose: () => void
}

/** Shows one item and swipes to the others. Loads PhotoSwipe with the first item. */
export function Carousel({ id, ids, onClose }: CarouselProps) {
  const { mediaCache, placeholders, router, loadPhotoSwipe, files, sharing, usage } = useGallery()
  const container = useRef<HTMLDivElement>(null)
  const view = useRef<SlideView | null>(null)
  const [state, setState] = useState<'loading' | 'shown' | 'failed'>('loading')
  const [damaged, setDamaged] = useState<ReadonlySet<string>>(new Set())
  const currentId = useRef(id)
  currentId.current = id

  // Closed before the next effect: a view of other items would move to a file of its own, and show that in the address.
  useLayoutEffect(() => {
    let unmounted = false
    setState('loading')
    const open = async () => {
      const [{ openPhotoSwipe, serviceSizes }, ...media] = await Promise.all([
        loadPhotoSwipe(),
        ...ids.map(mediaCache.load),
      ])
      const start = ids.indexOf(currentId.current)
      if (unmounted || container.current === null || start < 0) return
      view.current = openPhotoSwipe({
        container: container.current,
        media,
        start,
        files: { ...files, save: sharing.saveFile },
        placeholders,
        sizes: usage.bucket.peek()?.variants ?? serviceSizes,
        onMove(index) {
          const item = ids[index]
          if (item && item !== currentId.current) router.show(item)
        },
        onPartlyShown: (shown) => setDamaged((others) => new Set([...others, shown])),
        onClose,
      })
      setState('shown')
    }
    open().catch(() => {
      if (!unmounted) setState('failed')
    })
    return () => {
      unmounted = true
      view.current?.close()
      view.current = null
    }
    // A changed page needs new slides.
  }, [ids.join()])

  // With the name, so that the next key acts on what it names.
  useLayoutEffect(() => view.current?.moveTo(ids.indexOf(id)), [id])

  return (
    <>
      <div class="carousel" ref={container}>
        {state !== 'shown' && (
          <p class="viewer-message" role="status">
            {state === 'loading' ? strings.viewer.loading : strings.viewer.notLoaded}
          </p>
        )}
      </div>
      <p class="viewer-warning" role="status">
        {damaged.has(id) && strings.viewer.partlyShown}
      </p>
    </>
  )
}
