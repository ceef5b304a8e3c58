import type { Media } from '@mediabucket/client'
import { mayMove } from '../service/motion.ts'
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
const shownByBrowsers = /^image\/(?:jpeg|a?png|gif|webp|avif|bmp|svg\+xml|x-icon|vnd\.microsoft\.icon)$/
/** The longest edge of the medium variant (docs/interface.md, V1). Pixels. */
const mediumEdge = 1600
/** The size of a picture without a recorded size, until it is loaded. Pixels. */
const defaultSize = { width: 1200, height: 900 }

/**
 * Small screens load the medium variant of a large picture, or one of the sizes that keep its movement; zooming in loads the original.
 */
export function pictureSlide(media: Media, alt: string, movingSizes: readonly string[]): PictureSlide {
  const { width, height } =
    media.width && media.height ? { width: media.width, height: media.height } : defaultSize
  const original = bytesUrl(media)
  const medium = bytesUrl(media, 'medium')
  const slide = { width, height, alt }
  if (!shownByBrowsers.test(media.content_type)) return { ...slide, src: medium }
  // Other sizes do not move, so the original is shown.
  const moving = mayMove(media.content_type) ? movingSize(media, movingSizes) : null
  if (moving !== null)
    return {
      ...slide,
      src: original,
      srcset: `${bytesUrl(media, moving.name)} ${moving.width}w, ${original} ${width}w`,
    }
  const longest = Math.max(width, height)
  if (media.width === null || longest <= mediumEdge || mayMove(media.content_type)) {
    return { ...slide, src: original }
  }
  const mediumWidth = Math.round((width * mediumEdge) / longest)
  return { ...slide, src: original, srcset: `${medium} ${mediumWidth}w, ${original} ${width}w` }
}

/** The widest size that keeps the movement of a picture and its proportions, if the picture is wider. */
function movingSize({ width, height, variant_sizes }: Media, sizes: readonly string[]) {
  if (!width || !height) return null
  const found = sizes.flatMap((name) => {
    const size = variant_sizes?.[name]
    const isWhole = size && Math.abs((size.width * height) / (size.height * width) - 1) < 0.02
    return isWhole && size.width < width ? [{ name, width: size.width }] : []
  })
  return found.toSorted((one, other) => other.width - one.width)[0] ?? null
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
