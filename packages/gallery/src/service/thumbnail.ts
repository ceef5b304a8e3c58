import type { Media } from '@mediabucket/client'
import { bytesUrl } from './urls.ts'

/** Used if the server sends no Retry-After. Milliseconds. */
const defaultDelay = 4000
/** Milliseconds. */
const maxDelay = 60_000
/** After this many failures a picture is not requested again. */
const maxTries = 5
/** Between the first two requests for a thumbnail that is being rendered, doubled each time, and at most. Milliseconds. */
const [renderDelay, maxRenderDelay] = [250, 5000]
/** As an `<img>` sends it: thumbnails in different formats are rendered separately. */
const accept = 'image/avif,image/webp,*/*;q=0.8'

/** Whether the server creates thumbnails for a content type (docs/interface.md, V3). */
export const hasThumbnail = (contentType: string): boolean =>
  /^image\/(?:jpeg|a?png|gif|webp|tiff|avif)$/.test(contentType)

/** Larger drawings are not loaded for a tile. Bytes. */
const maxDrawing = 1_000_000

/**
 * The URL of the picture of an item on its tile; null if it has none. The server responds at once (docs/interface.md, V17): over HTTP/1.1,
 * requests that wait for renders would use all connections of the browser, and uploads could not begin.
 * A drawing (SVG) in an `<img>` runs no script and loads nothing.
 */
export function pictureUrl(media: Media): string | null {
  const { content_type, size, variants } = media
  if (content_type === 'image/svg+xml') return size <= maxDrawing ? bytesUrl(media) : null
  // Earlier versions of the service do not send `variants`.
  const isPictured = variants === undefined ? hasThumbnail(content_type) : variants !== null
  return isPictured ? `${bytesUrl(media, 'thumb')}&wait=0` : null
}

/**
 * Milliseconds after which to request a failed variant again; null if the item has none (404), or after the last try. A failed `<img>`
 * does not expose the response's status, so HEAD requests are sent until the variant is no longer being rendered. `tries` counts the
 * failures of the `<img>`.
 */
export async function pictureRetryDelay(
  url: string,
  tries: number,
  signal: AbortSignal,
): Promise<number | null> {
  if (tries >= maxTries) return null
  try {
    const response = await untilRendered(url, { method: 'HEAD', signal })
    // A browser without AVIF waits for another format.
    if (response.ok) return tries === 1 ? 0 : defaultDelay
    return response.status < 500 && response.status !== 429 ? null : retryDelay(response)
  } catch {
    return defaultDelay
  }
}

/** Requests a thumbnail again while the server responds that it is being rendered (202). Rejects if `signal` aborts. */
export async function untilRendered(
  url: string,
  init: { readonly method?: 'HEAD'; readonly signal?: AbortSignal } = {},
): Promise<Response> {
  for (let asked = 0; ; asked += 1) {
    const response = await fetch(url, {
      ...init,
      headers: { accept },
      cache: 'no-store',
      credentials: 'omit',
    })
    if (response.status !== 202) return response
    await pause(Math.min(renderDelay * 2 ** asked, maxRenderDelay))
    init.signal?.throwIfAborted()
  }
}

function retryDelay({ headers }: Response): number {
  const seconds = Number(headers.get('retry-after') ?? Number.NaN)
  return seconds > 0 ? Math.min(seconds * 1000, maxDelay) : defaultDelay
}

const pause = (time: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, time))
