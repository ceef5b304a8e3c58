import type { Catalog, Media } from '../catalog/catalog.ts'
import { isMediaId } from '../core/media-id.ts'
import { mediaUnknown } from './media-unknown.ts'

/**
 * The item that the last part of a media URL names: its id, alone or with its own extension (docs/interface.md B1).
 * Throws Fault `media-unknown` for anything else; `name` is any text.
 */
export function createFindByName(parts: { readonly catalog: Pick<Catalog, 'media'> }) {
  return async (name: string): Promise<Media> => {
    const dot = name.indexOf('.')
    const id = dot === -1 ? name : name.slice(0, dot)
    const media = isMediaId(id) ? await parts.catalog.media(id) : null
    if (media === null || (dot !== -1 && name.slice(dot + 1) !== media.extension)) throw mediaUnknown()
    return media
  }
}
