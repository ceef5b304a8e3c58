import type { Catalog } from '../catalog/catalog.ts'
import type { BucketId, Media } from '../catalog/records.ts'
import { isTrash } from '../catalog/trash.ts'
import { Fault } from '../core/fault.ts'
import { isMediaId } from '../core/media-id.ts'

/** The bucket's item with this id; `id` may be any text. Throws Fault `media-unknown` (docs/interface.md A6, M3). */
export async function findMedia(
  catalog: Pick<Catalog, 'media'>,
  bucketId: BucketId,
  id: string,
): Promise<Media> {
  const media = isMediaId(id) ? await catalog.media(id) : null
  if (media === null || media.bucketId !== bucketId) throw mediaUnknown()
  return media
}

/**
 * An item of any bucket by the last segment of its URL: its id, optionally with a dot and its extension
 * (docs/interface.md B1, B7); null if there is none. `name` may be any text.
 */
export function findByNameOperation(parts: { readonly catalog: Pick<Catalog, 'media'> }) {
  return async function findByName(name: string): Promise<Media | null> {
    const dot = name.indexOf('.')
    const id = dot < 0 ? name : name.slice(0, dot)
    const media = isMediaId(id) ? await parts.catalog.media(id) : null
    if (media === null || isTrash(media.bucketId)) return null
    return dot < 0 || name.slice(dot + 1) === media.extension ? media : null
  }
}

/** The same fault for every reason, so that it does not reveal items of other buckets (docs/interface.md M3). */
export const mediaUnknown = (): Fault => new Fault('media-unknown', 'There is no such item.')
