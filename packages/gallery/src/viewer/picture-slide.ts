import type { Media } from '@mediabucket/client'
import { hasThumbnail, pictureUrl, untilRendered } from '../service/thumbnail.ts'
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

/**
 * Whether a picture that the browser draws is incomplete, such as a file that was cut off: browsers fire `load` for it and draw
 * the part that they have. The server must refuse a thumbnail, and the browser must fail to decode the whole image: the first
 * alone may mean that the picture exceeds the server's limits. Browsers that decode such a picture report no damage.
 */
export async function isPartlyShown(media: Media, image: HTMLImageElement): Promise<boolean> {
  if (!(await isThumbnailRefused(media))) return false
  return await createImageBitmap(image).then(
    (bitmap) => {
      bitmap.close()
      return false
    },
    () => true,
  )
}

/** Whether the server refuses a thumbnail of a picture, because it is damaged or exceeds the server's limits. */
export async function isThumbnailRefused(media: Media): Promise<boolean> {
  const url = pictureUrl(media)
  // The thumbnail is usually in the browser's cache, so most pictures cost no request.
  if (url === null || !hasThumbnail(media.content_type) || (await isLoadable(url))) return false
  try {
    const response = await untilRendered(url)
    return response.status === 404 && (await response.text()).includes('"variant-unavailable"')
  } catch {
    return false
  }
}

const isLoadable = (url: string): Promise<boolean> =>
  new Promise((resolve) => {
    const image = new Image()
    image.onload = () => resolve(true)
    image.onerror = () => resolve(false)
    image.src = url
  })
