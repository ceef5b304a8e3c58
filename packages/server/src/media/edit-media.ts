import type { Catalog } from '../catalog/catalog.ts'
import type { BucketId, Item, ItemEdit } from '../catalog/records.ts'
import type { Actor } from '../core/actor.ts'
import { Fault } from '../core/fault.ts'
import { isMediaId } from '../core/media-id.ts'
import { findMedia, mediaUnknown } from './find-media.ts'

export type EditMedia = ReturnType<typeof editMediaOperation>

export function editMediaOperation({ catalog }: { readonly catalog: Pick<Catalog, 'media' | 'editMedia'> }) {
  /**
   * Changes the texts of an item, and returns it (docs/interface.md M5). `id` may be any text. With `accepts`, changes it only if
   * `accepts` returns true for its present state. Throws Fault `media-unknown` and `precondition-failed`.
   */
  return async function editMedia(
    bucketId: BucketId,
    id: string,
    edit: ItemEdit,
    accepts: ((item: Item) => boolean) | null,
    by: Actor,
  ): Promise<Item> {
    if (!isMediaId(id)) throw mediaUnknown()
    const expected = accepts === null ? null : await findMedia(catalog, bucketId, id)
    if (expected !== null && !accepts?.(expected)) throw preconditionFailed()
    const edited = await catalog.editMedia(bucketId, id, edit, expected, by)
    if (edited === 'missing') throw mediaUnknown()
    // Another request has changed it in between.
    if (edited === 'changed') throw preconditionFailed()
    return edited
  }
}

const preconditionFailed = (): Fault =>
  new Fault('precondition-failed', 'The item has changed: If-Match does not name its current ETag.')
