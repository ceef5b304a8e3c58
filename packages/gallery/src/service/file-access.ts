import { type Client, type Media, ProblemError } from '@mediabucket/client'
import type { MediaCache } from './media-cache.ts'
import { type Addressed, bytesUrl, downloadUrl, isPrivate, onOwnOrigin, plainUrl } from './urls.ts'

/** Access to the bytes of files; those of a private bucket have URLs that expire. */
export interface FileAccess {
  /**
   * Loads a file, or its first bytes, with a new URL if the signed one has expired. Rejects if it cannot be loaded, and if the server does not
   * send the first bytes alone.
   */
  bytes(
    media: Addressed & Pick<Media, 'size'>,
    options: { readonly firstBytes?: number; readonly signal?: AbortSignal },
  ): Promise<Response>
  /** Returns the item with other signed URLs after these have failed; null if there are none, as for an item of a public bucket. */
  renew(failed: Addressed): Promise<Media | null>
  /** Downloads the file. Rejects if there is no link of it. */
  save(media: Media): Promise<void>
}

/** Seconds in which the browser must have begun a download. */
const downloadTime = 60

export function createFileAccess(client: Client, mediaCache: Pick<MediaCache, 'renew'>): FileAccess {
  // The URLs need no token, and caches share responses without one.
  const get = (media: Addressed, options: { readonly firstBytes?: number; readonly signal?: AbortSignal }) =>
    client.get(bytesUrl(media), { ...options, withToken: false })

  const bytes: FileAccess['bytes'] = async (media, options) => {
    const response = await get(media, options).catch(async (error: unknown) => {
      const renewed = isExpiredLink(error) ? await mediaCache.renew(media) : null
      if (renewed === null) throw error
      return await get(renewed, options)
    })
    const { firstBytes = media.size } = options
    if (firstBytes >= media.size || response.status === 206) return response
    await response.body?.cancel()
    throw new Error('The server sends no ranges')
  }

  return {
    bytes,
    renew: mediaCache.renew,
    async save({ id, filename }) {
      const { url } = await client.createLink(id, { download: true, expiresIn: downloadTime })
      follow(onOwnOrigin(url), { download: filename ?? id })
    },
  }
}

const isExpiredLink = (error: unknown): boolean =>
  error instanceof ProblemError && error.problem.code === 'link-expired'

/** Follows a link with these attributes. */
export function follow(
  url: string,
  attributes: Partial<Pick<HTMLAnchorElement, 'download' | 'target' | 'rel'>>,
): void {
  const link = Object.assign(document.createElement('a'), attributes, { href: url })
  link.click()
}

/** The attributes of a link that downloads a file. A file of a private bucket gets a URL when the link is followed. */
export const downloadLink = (media: Media, save: (media: Media) => Promise<void>) => ({
  href: isPrivate(media) ? plainUrl(media) : downloadUrl(media),
  download: media.filename ?? media.id,
  onClick: isPrivate(media)
    ? (event: Event) => {
        event.preventDefault()
        void save(media)
      }
    : undefined,
})
