import type { Catalog } from '../catalog/catalog.ts'
import type { BucketId, Item } from '../catalog/records.ts'
import { isTrash } from '../catalog/trash.ts'
import { Fault } from '../core/fault.ts'
import { isItemId } from '../core/media-id.ts'

/** The bucket's item with this id; `id` may be any text. Throws Fault `media-unknown` (docs/interface.md A6, M3). */
export async function findItem(
  catalog: Pick<Catalog, 'item'>,
  bucketId: BucketId,
  id: string,
): Promise<Item> {
  const item = isItemId(id) ? await catalog.item(id) : null
  if (item === null || item.bucketId !== bucketId) throw itemUnknown()
  return item
}

/**
 * An item of any bucket by the last segment of its URL: its id, optionally with a dot and its extension
 * (docs/interface.md B1, B7); null if there is none. `name` may be any text.
 */
export function findByNameOperation(parts: { readonly catalog: Pick<Catalog, 'item'> }) {
  return async function findByName(name: string): Promise<Item | null> {
    const dot = name.indexOf('.')
    const id = dot < 0 ? name : name.slice(0, dot)
    const item = isItemId(id) ? await parts.catalog.item(id) : null
    if (item === null || isTrash(item.bucketId)) return null
    return dot < 0 || name.slice(dot + 1) === item.extension ? item : null
  }
}

/** The same fault for every reason, so that it does not reveal items of other buckets (docs/interface.md M3). */
export const itemUnknown = (): Fault => new Fault('media-unknown', 'There is no such item.')
