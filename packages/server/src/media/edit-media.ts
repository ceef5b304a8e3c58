import type { Catalog } from '../catalog/catalog.ts'
import type { BucketId, ItemDetails, ItemEdit } from '../catalog/records.ts'
import type { Actor } from '../core/actor.ts'
import { Fault } from '../core/fault.ts'
import { isItemId } from '../core/media-id.ts'
import { findItem, itemUnknown } from './find-media.ts'

export type EditItem = ReturnType<typeof editItemOperation>

export function editItemOperation({ catalog }: { readonly catalog: Pick<Catalog, 'item' | 'editItem'> }) {
  /**
   * Changes the texts of an item, and returns it (docs/interface.md M5). `id` may be any text. With `accepts`, changes it only if
   * `accepts` returns true for its present state. Throws Fault `media-unknown` and `precondition-failed`.
   */
  return async function editItem(
    bucketId: BucketId,
    id: string,
    edit: ItemEdit,
    accepts: ((item: ItemDetails) => boolean) | null,
    by: Actor,
  ): Promise<ItemDetails> {
    if (!isItemId(id)) throw itemUnknown()
    const expected = accepts === null ? null : await findItem(catalog, bucketId, id)
    if (expected !== null && !accepts?.(expected)) throw preconditionFailed()
    const edited = await catalog.editItem(bucketId, id, edit, expected, by)
    if (edited === 'missing') throw itemUnknown()
    // Another request has changed it in between.
    if (edited === 'changed') throw preconditionFailed()
    return edited
  }
}

const preconditionFailed = (): Fault =>
  new Fault('precondition-failed', 'The item has changed: If-Match does not name its current ETag.')
