import type { Media } from '@mediabucket/client'
import { downloadUrl, isPrivate, plainUrl } from '../service/urls.ts'

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
