import type { Media } from '@mediabucket/client'
import PhotoSwipe, { type SlideData } from 'photoswipe'
import 'photoswipe/style.css'
import { render } from 'preact'
import { kindOf } from '../format.ts'
import type { FileAccess } from '../service/file-access.ts'
import { standsStill, wantsStillness } from '../service/motion.ts'
import { pictureRetryDelay } from '../service/thumbnail.ts'
import { strings } from '../strings.ts'
import type { Placeholders } from '../tiles/placeholders.ts'
import { isPartlyShown, pictureSlide } from './picture-slide.ts'
import { FileSlide, fillPlaceholder, PictureErrorCard } from './slides.tsx'
import { StillSlide } from './still-slide.tsx'

interface SlideViewOptions {
  readonly container: HTMLElement
  /** In the order of the list; null for items that could not be loaded. */
  readonly media: readonly (Media | null)[]
  readonly start: number
  readonly files: FileAccess
  readonly placeholders: Placeholders
  /** Those of the bucket, such as `card=640x360:cover`. */
  readonly sizes: readonly string[]
  readonly onMove: (index: number) => void
  /** Called with the id of a damaged picture of which the browser draws only a part. */
  readonly onPartlyShown: (id: string) => void
  /** Called when a person swipes the picture away or taps beside it. */
  readonly onClose: () => void
}

export interface SlideView {
  moveTo(index: number): void
  close(): void
}

/** Opens PhotoSwipe for gestures and zoom only. The dialog around it has the bar, the buttons and the focus. */
export function openPhotoSwipe(options: SlideViewOptions): SlideView {
  const { container, start, files, placeholders, onMove, onPartlyShown, onClose } = options
  const media = [...options.media]
  const closing = new AbortController()
  /** How often the picture of a slide could not be loaded. */
  const failures = new Map<number, number>()
  const movingSizes = options.sizes.flatMap((size) =>
    /:animated(?::|$)/.test(size) ? [/^[^=:]*/.exec(size)?.[0] ?? ''] : [],
  )
  const slides = media.map((item) => slideOf(item, movingSizes, item !== null && standsStill(item)))
  const pswp = new PhotoSwipe({
    dataSource: slides,
    index: start,
    appendToEl: container,
    getViewportSizeFn: () => ({ x: container.clientWidth, y: container.clientHeight }),
    loop: false,
    trapFocus: false,
    returnFocus: false,
    escKey: false,
    arrowKeys: false,
    bgOpacity: 1,
    showHideAnimationType: 'none',
    ...(wantsStillness() ? { zoomAnimationDuration: false } : {}),
    errorMsg: strings.slides.noPicture,
  })

  // Its buttons and its indicator are parsed from HTML, which the policy of the page forbids.
  pswp.on('uiRegister', () => {
    if (pswp.ui) pswp.ui.uiElementsData = []
  })
  pswp.on('contentLoad', (event) => {
    const { content } = event
    if (content.isImageContent()) return
    event.preventDefault()
    const element = document.createElement('div')
    element.className = 'pswp__content slide'
    const item = media[content.index]
    const slide = { files, placeholders }
    if (item && slides[content.index]?.type === 'still')
      render(<StillSlide media={item} onShow={() => showMoving(content.index)} {...slide} />, element)
    else if (item) render(<FileSlide media={item} {...slide} />, element)
    stopSwipingInside(element)
    content.element = element
    content.onLoaded()
  })
  pswp.on('contentDestroy', ({ content }) => {
    const { element } = content
    if (element instanceof HTMLImageElement) stopLoading(element)
    else if (element) render(null, element)
  })
  // Only the slide on the screen and its neighbours may wait for renders: over HTTP/1.1, a browser has six connections.
  pswp.on('contentLazyLoad', (event) => {
    const { src = '', srcset } = slides[event.content.index] ?? {}
    if (srcset !== undefined || src.includes('variant=')) event.preventDefault()
  })
  pswp.on('slideDestroy', ({ slide: { content } }) => {
    if (!(content.element instanceof HTMLImageElement) || content.element.complete) return
    pswp.contentLoader.removeByIndex(content.index)
    content.destroy()
  })
  pswp.on('contentActivate', ({ content }) => {
    setActive(content.element, true)
  })
  pswp.on('contentDeactivate', ({ content }) => {
    setActive(content.element, false)
  })
  pswp.on('contentAppend', ({ content }) => {
    setActive(content.element, content.slide?.isActive ?? false)
    const item = media[content.index]
    const placeholder = content.placeholder?.element
    if (item && placeholder)
      fillPlaceholder(placeholder, item, placeholders, content.slide?.isFirstSlide ?? false)
  })

  pswp.addFilter('contentErrorElement', (element, { index }) => {
    const item = media[index]
    if (item) {
      element.textContent = ''
      element.className = 'slide'
      render(<PictureErrorCard media={item} files={files} placeholders={placeholders} />, element)
    }
    return element
  })

  pswp.on('loadError', ({ content: { index } }) => {
    const item = media[index]
    if (item) void recover(item, index)
  })

  /** Shows the original if a variant is unavailable. A picture of which browsers show only the variant is requested again. */
  async function recover(item: Media, index: number): Promise<void> {
    if (await renew(item, index)) return
    const { srcset, ...slide } = slides[index] ?? {}
    slides[index] = slide
    const delay = srcset === undefined ? await retryDelay(slide.src ?? '', index) : 0
    if (delay !== null) setTimeout(() => closing.signal.aborted || pswp.refreshSlideContent(index), delay)
  }

  async function retryDelay(src: string, index: number): Promise<number | null> {
    if (!src.includes('variant=')) return null
    const tries = (failures.get(index) ?? 0) + 1
    failures.set(index, tries)
    return await pictureRetryDelay(src, tries, closing.signal)
  }

  /** Loads a picture again if its signed URL has expired. */
  async function renew(item: Media, index: number): Promise<boolean> {
    const renewed = await files.renew(item)
    if (closing.signal.aborted || renewed === null) return false
    media[index] = renewed
    slides[index] = slideOf(renewed, movingSizes)
    pswp.refreshSlideContent(index)
    return true
  }

  function showMoving(index: number): void {
    if (closing.signal.aborted) return
    slides[index] = slideOf(media[index] ?? null, movingSizes)
    pswp.refreshSlideContent(index)
  }

  type Slide = NonNullable<typeof pswp.currSlide>
  /** Corrects the size of a slide from the loaded image if the recorded size is missing or wrong; returns whether it did. */
  const correctSize = (slide: Slide): boolean => {
    const { content } = slide
    const image = content.element
    const item = media[content.index]
    if (!(image instanceof HTMLImageElement) || !image.complete || image.naturalWidth === 0) return false
    if (item?.content_type !== 'image/jpeg') image.classList.add('may-be-transparent')
    const recorded = slide.width / slide.height
    const actual = image.naturalWidth / image.naturalHeight
    if (item?.width && Math.abs(recorded / actual - 1) < 0.02) return false
    slide.width = content.width = image.naturalWidth
    slide.height = content.height = image.naturalHeight
    return true
  }
  // The image of a neighbour may be loaded before its slide exists.
  pswp.on('slideInit', ({ slide }) => void correctSize(slide))
  pswp.on('loadComplete', ({ slide, content }) => {
    if (correctSize(slide)) {
      // The zoom level of another size means nothing, and PhotoSwipe would keep the old size with it.
      slide.currZoomLevel = slide.zoomLevels.initial
      slide.resize()
    }
    const item = media[content.index]
    const image = content.element
    if (!item || !(image instanceof HTMLImageElement) || image.naturalWidth === 0) return
    void isPartlyShown(item, image).then(
      (partly) => partly && !closing.signal.aborted && onPartlyShown(item.id),
    )
  })

  // `change` also fires when content is refreshed during a swipe.
  pswp.on('change', () => {
    if (!closing.signal.aborted && pswp.currIndex === pswp.potentialIndex) onMove(pswp.currIndex)
  })
  pswp.on('close', () => {
    if (!closing.signal.aborted) onClose()
  })
  pswp.on('keydown', (event) => {
    if (!isMovement(event.originalEvent, container)) event.preventDefault()
  })

  const resizeObserver = new ResizeObserver(() => {
    pswp.updateSize(true)
    const { left, top } = container.getBoundingClientRect()
    pswp.setScrollOffset(left, top + scrollY)
  })

  pswp.init()
  pswp.element?.removeAttribute('role')
  resizeObserver.observe(container)
  return {
    moveTo(index) {
      if (index >= 0 && index !== pswp.potentialIndex) pswp.goTo(index)
    },
    close() {
      closing.abort()
      resizeObserver.disconnect()
      pswp.destroy()
    },
  }
}

function slideOf(item: Media | null, movingSizes: readonly string[], isStill = false): SlideData {
  if (item === null) return { type: 'nothing' }
  if (isStill) return { type: 'still' }
  if (kindOf(item.content_type) !== 'picture') return { type: 'file' }
  return { ...pictureSlide(item, item.alt_text ?? item.filename ?? strings.unnamed, movingSizes) }
}

function stopLoading(image: HTMLImageElement): void {
  if (image.complete) return
  image.removeAttribute('srcset')
  image.removeAttribute('src')
}

const controls = 'audio, video, a, .choice, .slide-play'

/** Keeps PhotoSwipe from handling events of players, links and texts. Texts can be swiped by touch only. */
function stopSwipingInside(element: HTMLElement): void {
  for (const name of ['pointerdown', 'click', 'wheel'] as const) {
    element.addEventListener(name, (event) => {
      const byTouch = name === 'pointerdown' && event instanceof PointerEvent && event.pointerType === 'touch'
      const interactive = byTouch ? controls : `${controls}, .text-scroll`
      if (event.target instanceof Element && event.target.closest(interactive)) event.stopPropagation()
    })
  }
}

/** Hides the slides beside the active one from keyboard and screen readers, and pauses their players. */
function setActive(element: HTMLElement | undefined, active: boolean): void {
  if (!element) return
  element.inert = !active
  if (!active) for (const player of element.querySelectorAll<HTMLMediaElement>('audio, video')) player.pause()
}

/**
 * Whether a key moves a picture that is larger than the view. PhotoSwipe listens on the document. All its other keys are disabled: arrows to the side
 * are steps of the viewer, single letters violate WCAG 2.1.4, and Tab belongs to the browser.
 */
function isMovement({ key, target }: KeyboardEvent, container: HTMLElement): boolean {
  if (!(target instanceof Element) || (key !== 'ArrowUp' && key !== 'ArrowDown')) return false
  const isInside = target === document.body || target.closest('dialog') === container.closest('dialog')
  return isInside && !target.closest('audio, video, input, select, textarea, .text-scroll')
}
