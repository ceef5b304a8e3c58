import type { Media } from '@mediabucket/client'
import { hasThumbnail, pictureUrl, untilRendered } from '../service/thumbnail.ts'

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
