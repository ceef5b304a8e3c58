import type { Media } from '@mediabucket/client'
import { bytesUrl } from './urls.ts'

/** Used if the server sends no Retry-After. Milliseconds. */
const defaultDelay = 4000
/** Milliseconds. */
const maxDelay = 60_000

/** Whether the server creates thumbnails for a content type (docs/interface.md, V3). */
export const hasThumbnail = (contentType: string): boolean =>
  /^image\/(?:jpeg|png|gif|webp|tiff|avif)$/.test(contentType)

/** Larger drawings are not loaded for a tile. Bytes. */
const maxDrawing = 1_000_000

/** The URL of the picture of an item on its tile; null if it has none. A drawing (SVG) in an `<img>` runs no script and loads nothing. */
export function pictureUrl(media: Media): string | null {
  const { content_type, size, variants } = media
  if (content_type === 'image/svg+xml') return size <= maxDrawing ? bytesUrl(media) : null
  // Earlier versions of the service do not send `variants`.
  const isPictured = variants === undefined ? hasThumbnail(content_type) : variants !== null
  return isPictured ? bytesUrl(media, 'thumb') : null
}

/**
 * Milliseconds after which to request a failed thumbnail again; null if the item has no thumbnail (404). A failed `<img>`
 * does not expose the response's status, so a HEAD request asks for it.
 */
export async function thumbnailRetryDelay(url: string): Promise<number | null> {
  try {
    const response = await fetch(url, { method: 'HEAD', cache: 'no-store', credentials: 'omit' })
    if (response.ok) return 0
    if (response.status < 500 && response.status !== 429) return null
    const seconds = Number(response.headers.get('retry-after') ?? Number.NaN)
    return seconds > 0 ? Math.min(seconds * 1000, maxDelay) : defaultDelay
  } catch {
    return defaultDelay
  }
}
