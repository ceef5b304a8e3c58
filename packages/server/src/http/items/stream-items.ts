import type { BucketId, Item } from '../../catalog/records.ts'
import type { ItemsQuery } from '../../core/items-query.ts'
import type { ListItems } from '../../media/items/list-items.ts'

/** Items that are read and sent together. */
const batchSize = 200

/** Reads the items of a list from its start or cursor to its end, batch by batch, as they are consumed (K10). */
export async function* streamItems(
  listItems: ListItems,
  bucketId: BucketId,
  query: ItemsQuery,
): AsyncGenerator<readonly Item[], void, undefined> {
  for (let after = query.after; ; ) {
    const { items, next } = await listItems(bucketId, { ...query, limit: batchSize, after })
    // Items may have expired since the stream began (E2).
    const now = Date.now()
    yield items.filter(({ expiresAt }) => expiresAt == null || expiresAt > now)
    if (next === null) return
    after = next
  }
}
