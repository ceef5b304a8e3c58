import type { VerifyLink } from '../access/signed-links.ts'
import { itemUnknown } from '../core/faults.ts'
import { hasSignature, parseSignedUrl, type SignedUrl } from '../core/item-urls.ts'
import type { Actor } from '../core/token-rules.ts'
import type { Authorizer } from '../http/authorizer.ts'
import type { RequestParts } from '../http/route.ts'
import type { Item } from '../storage/catalog/records.ts'

/** By what a request reads bytes that are not public. `expires` is in seconds since 1970. */
export type PrivateAccess =
  | { readonly by: 'token'; readonly actor: Actor }
  | { readonly by: 'link'; readonly expires: number; readonly keyId: string }

/** The signature of a request for bytes; null if it has none. */
export type SentLink = SignedUrl | 'malformed' | null

/** The signature of a request whose path has this last segment, decoded. */
export function linkOf(url: string, name: string): SentLink {
  if (!hasSignature(url)) return null
  const signed = parseSignedUrl(url)
  return signed?.name === name ? signed : 'malformed'
}

/**
 * Returns the item that `find` finds, and by what the request reads it; null if it is public and the URL is plain. Otherwise requires a
 * signed URL, or a token of the bucket with `media:read` (docs/interface.md H2, H3). What the response shows of an item that the caller
 * may not read is the same as for no item.
 */
export type AccessCheck = (
  find: () => Promise<Item | null>,
  exchange: RequestParts & { readonly link: SignedUrl | null },
  /** Whether everybody may read what is requested of an item, although its bucket is private. */
  isPublic?: (item: Item) => boolean,
) => Promise<{ readonly item: Item; readonly access: PrivateAccess | null }>

export const createAccessCheck =
  ({ verifyLink, authorize }: { verifyLink: VerifyLink; authorize: Authorizer }): AccessCheck =>
  async (find, { id, request, line, link }, isPublic = () => false) => {
    if (link !== null) {
      // Before the item is looked up: without a valid signature, neither the response nor its time depends on it.
      await verifyLink(link)
      const item = await find()
      if (item === null) throw itemUnknown()
      return { item, access: { by: 'link', expires: link.expires, keyId: link.keyId } }
    }
    const item = await find()
    if (item !== null && (!item.isPrivate || isPublic(item))) return { item, access: null }
    if (request.headers.authorization !== undefined) {
      const { bucketId, actor } = await authorize({ id, request, line }, 'media:read')
      if (item !== null && item.bucketId === bucketId) return { item, access: { by: 'token', actor } }
    }
    throw itemUnknown()
  }
