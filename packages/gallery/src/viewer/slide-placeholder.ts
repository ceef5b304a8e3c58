import type { Media } from '@mediabucket/client'
import type { Placeholders } from '../listing/placeholders.ts'
import { pictureUrl } from '../service/thumbnail.ts'

/**
 * Fills the element that is shown until a picture is loaded: with its ThumbHash, and above that, if `withThumbnail`, with its
 * thumbnail, which the browser usually has in its cache.
 */
export function fillPlaceholder(
  element: Element,
  media: Media,
  placeholders: Placeholders,
  withThumbnail: boolean,
): void {
  if (element.childElementCount > 0) return
  if (media.thumbhash) {
    const canvas = document.createElement('canvas')
    placeholders.draw(canvas, media.thumbhash)
    element.append(canvas)
  }
  const url = withThumbnail ? pictureUrl(media) : null
  if (url !== null) element.append(Object.assign(new Image(), { src: url, alt: '' }))
}
