import { createHash } from 'node:crypto'
import type { Item } from '../../catalog/records.ts'
import type { UrlSettings } from '../../core/media-url.ts'
import { describeMedia } from '../../media/describe-media.ts'

/** The media object of an item and the headers of its response, with the entity tag of the object (docs/interface.md M6). */
export function itemResponse(urlSettings: UrlSettings, item: Item) {
  const media = describeMedia(urlSettings, item)
  const etag = `"${createHash('sha256').update(JSON.stringify(media)).digest('base64url')}"`
  return { media, etag, headers: { 'cache-control': 'private, no-cache', etag } }
}
