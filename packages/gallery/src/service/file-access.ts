import type { Client, Media } from '@mediabucket/client'
import type { MediaCache } from '../listing/media-cache.ts'
import { bytesUrl, onOwnOrigin } from './urls.ts'

/** Access to files of a private bucket, whose URLs expire. */
export interface FileAccess {
  /** Returns the item with URLs that do not expire soon; null if it cannot be loaded. */
  renew(id: string): Promise<Media | null>
  /** Downloads the file. Rejects if there is no link of it. */
  save(media: Media): Promise<void>
  /** Opens the file in a new tab, without its URL in the address bar and in the history. Rejects if it cannot be loaded. */
  open(media: Media): Promise<void>
}

/** Seconds in which the browser must have begun a download. */
const downloadTime = 60

export const createFileAccess = (client: Client, mediaCache: Pick<MediaCache, 'load'>): FileAccess => ({
  renew: mediaCache.load,
  async save({ id, filename }) {
    const { url } = await client.createLink(id, { download: true, expiresIn: downloadTime })
    follow(onOwnOrigin(url), { download: filename ?? id })
  },
  async open(media) {
    const response = await fetch(bytesUrl(media), { credentials: 'omit' })
    if (!response.ok) throw new Error(`The server responded with ${response.status}`)
    const copy = URL.createObjectURL(await response.blob())
    follow(copy, { target: '_blank', rel: 'noopener' })
    setTimeout(() => URL.revokeObjectURL(copy), 60_000)
  },
})

function follow(
  url: string,
  attributes: Partial<Pick<HTMLAnchorElement, 'download' | 'target' | 'rel'>>,
): void {
  const link = Object.assign(document.createElement('a'), attributes, { href: url })
  link.click()
}
