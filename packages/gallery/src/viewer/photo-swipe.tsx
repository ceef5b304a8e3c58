import type { Media } from '@mediabucket/client'
import PhotoSwipe, { type SlideData } from 'photoswipe'
import 'photoswipe/style.css'
import { render } from 'preact'
import { kindOf } from '../format/kind.ts'
import { strings } from '../strings.ts'
import { FileCard, FileSlide } from './file-slide.tsx'
import { pictureSlide } from './picture-slide.ts'

export interface SlideViewOptions {
  readonly place: HTMLElement
  /** In the order of the page; null for what is not known. */
  readonly media: readonly (Media | null)[]
  readonly start: number
  readonly onMove: (index: number) => void
  readonly onPast: (forward: boolean) => void
  /** Somebody swiped the picture away, or touched beside it. */
  readonly onClose: () => void
}

export interface SlideView {
  moveTo(index: number): void
  close(): void
}

/** PhotoSwipe for the gestures alone: the bar, the buttons and the focus are the dialog's around it. */
export function openPhotoSwipe({
  place,
  media,
  start,
  onMove,
  onPast,
  onClose,
}: SlideViewOptions): SlideView {
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
    render(<FileSlide media={item} />, element)
    // What can be pressed, dragged, marked and scrolled inside is not for swiping; fingers swipe over texts too.
    for (const name of ['pointerdown', 'click', 'wheel'] as const) {
      element.addEventListener(name, (inner) => {
        const swiping =
          name === 'pointerdown' && inner instanceof PointerEvent && inner.pointerType === 'touch'
        const own = swiping ? 'audio, video, a' : 'audio, video, a, .text-scroll'
        if (inner.target instanceof Element && inner.target.closest(own)) inner.stopPropagation()
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

  type Slide = NonNullable<typeof pswp.currSlide>
  /** A size that nobody has recorded is known when the picture is there; answers whether it is another one. */
  const measure = (slide: Slide): boolean => {
    const { content } = slide
    const image = content.element
    const item = media[content.index]
    if (!(image instanceof HTMLImageElement) || !image.complete || image.naturalWidth === 0) return false
    if (item?.content_type !== 'image/jpeg') image.classList.add('see-through')
    const recorded = slide.width / slide.height
    const shown = image.naturalWidth / image.naturalHeight
    if (item?.width && Math.abs(recorded / shown - 1) < 0.02) return false
    slide.width = content.width = image.naturalWidth
    slide.height = content.height = image.naturalHeight
    return true
  }
  // A neighbour may have arrived before it had a slide.
  pswp.on('slideInit', ({ slide }) => void measure(slide))
  pswp.on('loadComplete', ({ slide }) => {
    if (measure(slide)) slide.resize()
  })

  // While a swipe runs to its end, a picture that comes anew tells of a change too.
  pswp.on('change', () => {
    if (pswp.currIndex === pswp.potentialIndex) onMove(pswp.currIndex)
  })
  pswp.on('close', () => {
    if (!closing) onClose()
  })
  pswp.on('keydown', (event) => {
    const { originalEvent } = event
    const { key, target } = originalEvent
    const dialog = place.closest('dialog')
    // A text that was read and is left takes the focus with it; then the page's body has it.
    const topmost = [...document.querySelectorAll('dialog[open]')].at(-1) === dialog
    const inside =
      target instanceof Element &&
      (target.closest('dialog') === dialog || (topmost && target === document.body))
    const sideways = key === 'ArrowLeft' || key === 'ArrowRight'
    const own = sideways ? 'audio, video, input' : 'audio, video, input, .text-scroll'
    const used = target instanceof Element && target.closest(own) !== null
    // One letter alone must not do anything (WCAG 2.1.4), and Tab is the browser's.
    if (!inside || used || !key.startsWith('Arrow')) return event.preventDefault()
    if (!sideways) return
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
      if (index >= 0 && index !== pswp.potentialIndex) pswp.goTo(index)
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
