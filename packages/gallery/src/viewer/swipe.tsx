import type { Media } from '@mediabucket/client'
import PhotoSwipe, { type SlideData } from 'photoswipe'
import 'photoswipe/style.css'
import { render } from 'preact'
import { kindOf } from '../format/kind.ts'
import { strings } from '../strings.ts'
import { pictureSlide } from './picture-slide.ts'
import { FileCard, SlideContent } from './slide-content.tsx'

export interface SwipeOptions {
  readonly place: HTMLElement
  /** In the order of the page; null for what is not known. */
  readonly media: readonly (Media | null)[]
  readonly start: number
  readonly onMove: (index: number) => void
  readonly onPast: (forward: boolean) => void
  /** Somebody swiped the picture away, or touched beside it. */
  readonly onClose: () => void
}

export interface Swipe {
  moveTo(index: number): void
  close(): void
}

/** PhotoSwipe for the gestures alone: the bar, the buttons and the focus are the dialog's around it. */
export function openSwipe({ place, media, start, onMove, onPast, onClose }: SwipeOptions): Swipe {
  let closing = false
  const still = matchMedia('(prefers-reduced-motion: reduce)').matches
  const slides = media.map(slideOf)
  const pswp = new PhotoSwipe({
    dataSource: slides,
    index: start,
    appendToEl: place,
    getViewportSizeFn: () => ({ x: place.clientWidth, y: place.clientHeight }),
    loop: false,
    trapFocus: false,
    returnFocus: false,
    escKey: false,
    arrowKeys: false,
    arrowPrev: false,
    arrowNext: false,
    close: false,
    zoom: false,
    counter: false,
    bgOpacity: 1,
    showHideAnimationType: 'none',
    ...(still ? { zoomAnimationDuration: false } : {}),
    errorMsg: strings.viewer.noPicture,
  })

  pswp.on('contentLoad', (event) => {
    const { content } = event
    const item = media[content.index]
    if (!item || content.isImageContent()) return
    event.preventDefault()
    const element = document.createElement('div')
    element.className = 'pswp__content slide'
    render(<SlideContent media={item} />, element)
    // What can be pressed and dragged inside is not for swiping.
    for (const name of ['pointerdown', 'click'] as const) {
      element.addEventListener(name, (inner) => {
        if (inner.target instanceof Element && inner.target.closest('audio, video, a'))
          inner.stopPropagation()
      })
    }
    content.element = element
    content.onLoaded()
  })
  pswp.on('contentDestroy', ({ content }) => {
    if (content.element && !content.isImageContent()) render(null, content.element)
  })
  pswp.on('contentActivate', ({ content }) => setActive(content.element, true))
  pswp.on('contentDeactivate', ({ content }) => setActive(content.element, false))
  pswp.on('contentAppend', ({ content }) => setActive(content.element, content.slide?.isActive ?? false))

  pswp.addFilter('contentErrorElement', (element, { index }) => {
    const item = media[index]
    if (item) {
      element.textContent = ''
      element.className = 'slide'
      render(
        <FileCard media={item} kind={kindOf(item.content_type)} about={strings.viewer.noPicture} />,
        element,
      )
    }
    return element
  })

  // The smaller picture may not be had just now, or not at all; then there is still the picture itself.
  pswp.on('loadError', ({ content: { index } }) => {
    const { srcset, ...itself } = slides[index] ?? {}
    if (srcset === undefined) return
    slides[index] = itself
    setTimeout(() => pswp.refreshSlideContent(index))
  })

  // A size that nobody has recorded is known when the picture is there.
  pswp.on('loadComplete', ({ content, slide }) => {
    const image = content.element
    if (!(image instanceof HTMLImageElement) || image.naturalWidth === 0) return
    const recorded = slide.width / slide.height
    const shown = image.naturalWidth / image.naturalHeight
    if (media[content.index]?.width && Math.abs(recorded / shown - 1) < 0.02) return
    slide.width = content.width = image.naturalWidth
    slide.height = content.height = image.naturalHeight
    slide.resize()
  })

  pswp.on('change', () => onMove(pswp.currIndex))
  pswp.on('close', () => {
    if (!closing) onClose()
  })
  pswp.on('keydown', (event) => {
    const { originalEvent } = event
    const { key, target } = originalEvent
    const inside = target instanceof Element && target.closest('dialog') === place.closest('dialog')
    const used = target instanceof Element && target.closest('audio, video, input') !== null
    // One letter alone must not do anything (WCAG 2.1.4), and Tab is the browser's.
    if (!inside || used || !key.startsWith('Arrow')) return event.preventDefault()
    if (key !== 'ArrowLeft' && key !== 'ArrowRight') return
    event.preventDefault()
    originalEvent.preventDefault()
    onPast(key === 'ArrowRight')
  })

  const watch = new ResizeObserver(() => {
    pswp.updateSize(true)
    const { left, top } = place.getBoundingClientRect()
    pswp.setScrollOffset(left, top + scrollY)
  })

  pswp.init()
  pswp.element?.removeAttribute('role')
  watch.observe(place)
  return {
    moveTo(index) {
      if (index >= 0 && index !== pswp.currIndex) pswp.goTo(index)
    },
    close() {
      closing = true
      watch.disconnect()
      pswp.destroy()
    },
  }
}

function slideOf(item: Media | null): SlideData {
  if (item === null) return { type: 'html', html: '' }
  if (kindOf(item.content_type) !== 'picture') return { type: 'file' }
  return { ...pictureSlide(item, item.filename ?? strings.unnamed) }
}

/** A neighbour waits out of sight: it must not be reached by keys, nor play on. */
function setActive(element: HTMLElement | undefined, active: boolean): void {
  if (!element) return
  element.inert = !active
  if (!active) for (const player of element.querySelectorAll<HTMLMediaElement>('audio, video')) player.pause()
}
