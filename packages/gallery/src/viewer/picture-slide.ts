import type { Media } from '@mediabucket/client'
import { bytesUrl } from '../service/urls.ts'

/** The URLs and the size of a picture, as PhotoSwipe's slide data. */
export interface PictureSlide {
  readonly src: string
  readonly srcset?: string
  readonly width: number
  readonly height: number
  readonly alt: string
}

/** Types that all browsers display. */
const shownByBrowsers = /^image\/(?:jpeg|png|gif|webp|avif|bmp|svg\+xml|x-icon|vnd\.microsoft\.icon)$/
/** Types that may be animated. Variants are not animated, so the original is displayed. */
const mayBeAnimated = /^image\/(?:gif|webp|png|avif|svg\+xml)$/
/** The longest edge of the medium variant (docs/interface.md, V1). Pixels. */
const mediumEdge = 1600
/** The size of a picture without a recorded size, until it is loaded. Pixels. */
const defaultSize = { width: 1200, height: 900 }

/** Small screens load the medium variant of a large picture; zooming in loads the original. */
export function pictureSlide(media: Media, alt: string): PictureSlide {
  const { width, height } =
    media.width && media.height ? { width: media.width, height: media.height } : defaultSize
  const original = bytesUrl(media)
  const medium = bytesUrl(media, 'medium')
  const slide = { width, height, alt }
  if (!shownByBrowsers.test(media.content_type)) return { ...slide, src: medium }
  const longest = Math.max(width, height)
  if (media.width === null || longest <= mediumEdge || mayBeAnimated.test(media.content_type)) {
    return { ...slide, src: original }
  }
  const mediumWidth = Math.round((width * mediumEdge) / longest)
  return { ...slide, src: original, srcset: `${medium} ${mediumWidth}w, ${original} ${width}w` }
}
