import type { Catalog } from '../../catalog/catalog.ts'
import type { BucketId, ItemDetails } from '../../catalog/records.ts'
import { listState } from '../../core/item-expiry.ts'
import type { ItemsQuery } from '../../core/items-query.ts'
import { createCursors } from './cursors.ts'

/** Items of a bucket, and the state that they were read from (listState). */
interface ItemList {
  readonly state: string
  readonly items: readonly ItemDetails[]
  /** The cursor of the last item; null if no items follow. */
  readonly next: string | null
}

export type ListItems = ReturnType<typeof listItemsOperation>

/** Lists the items of a bucket by cursor (docs/interface.md, Lists of items). Throws Fault `cursor-malformed`. */
export function listItemsOperation({ catalog }: { readonly catalog: Pick<Catalog, 'epoch' | 'items'> }) {
  const cursors = createCursors(catalog.epoch)
  return async function listItems(
    bucketId: BucketId,
    { limit, after, ...filter }: ItemsQuery,
  ): Promise<ItemList> {
    const selection = { bucketId, ...filter }
    const place = after === null ? null : cursors.parse(selection, after)
    // One more than requested shows whether items follow.
    const { rows, examined, ...current } = await catalog.items(selection, place, limit + 1)
    const shown = rows.slice(0, limit)
    const last = rows.length > limit ? shown.at(-1) : undefined
    const end = last === undefined ? examined : placeOf(last)
    return {
      state: listState(current),
      items: shown.map(({ item }) => item),
      next: end === null ? null : cursors.format(selection, end),
    }
  }
}

const placeOf = ({ seq, item }: { readonly seq: number; readonly item: ItemDetails }) => ({
  seq,
  createdAt: item.createdAt,
})
