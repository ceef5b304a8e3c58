import type { CatalogSource, CatalogTarget, ItemPosition } from '../catalog/transfer.ts'

/** Items in one transaction of the target: a few megabytes at most, because each may have its bytes with it. */
const batch = 64

/**
 * Copies all rows of one catalog into another, empty one. Continues an interrupted copy. `onItems` receives how many items
 * the target has. Throws TransferError if the target has other data.
 */
export async function transferRows(parts: {
  readonly source: CatalogSource
  readonly target: CatalogTarget
  readonly onItems: (done: number, of: number) => void
}): Promise<void> {
  const { source, target, onItems } = parts
  const last = await target.begin(await source.state(), await source.buckets())
  await target.addTokens(await source.tokens())
  await transferItems(parts, last, onItems)
  for await (const requests of source.requests()) await target.addRequests(requests)
  await target.finish()
}

async function transferItems(
  { source, target }: { readonly source: CatalogSource; readonly target: CatalogTarget },
  last: ItemPosition | null,
  onItems: (done: number, of: number) => void,
): Promise<void> {
  const all = await source.countItems()
  let done = last === null ? 0 : await source.countItems(last)
  onItems(done, all)
  for (;;) {
    const items = await source.items(last, batch)
    if (items.length === 0) return
    await target.addItems(items)
    last = items.at(-1) ?? null
    done += items.length
    onItems(done, all)
  }
}
