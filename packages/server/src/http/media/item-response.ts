import { createHash } from 'node:crypto'
import type { Item } from '../../catalog/records.ts'
import type { UrlSettings } from '../../core/media-url.ts'
import type { LinkSigner } from '../../core/signed-url.ts'
import { describeMedia } from '../../media/describe-media.ts'
import { matchesStrongly } from '../headers/entity-tag.ts'

/**
 * The media object of an item and the headers of its response, with the entity tag of the object (docs/interface.md M6).
 * `stateTag` is the tag of the same object with plain URLs.
 */
export function itemResponse(urlSettings: UrlSettings, item: Item, signer: LinkSigner | null = null) {
  const plain = describeMedia(urlSettings, item)
  const digest = createHash('sha256').update(JSON.stringify(plain)).digest('base64url')
  const media = signer === null ? plain : describeMedia(urlSettings, item, signer)
  const stateTag = `"${digest}"`
  const etag = signer === null ? stateTag : `"${digest}.${signer.tag}"`
  return { media, etag, stateTag, headers: { 'cache-control': 'private, no-cache', etag } }
}

/** Whether If-Match names the state of an item. Whether its URLs are signed, and until when, is not a part of the state. */
export const matchesState = (ifMatch: string, { stateTag }: { readonly stateTag: string }): boolean =>
  matchesStrongly(ifMatch.replace(/"([\w-]{43})\.[a-z0-9.]+"/g, '"$1"'), stateTag)
