import { hash } from 'node:crypto'
import type { CatalogSource, CatalogTarget, ItemPosition, TransferredItem } from '../catalog/transfer.ts'
import type { MediaId } from '../core/media-id.ts'

/** Items in one transaction of the target: a few megabytes at most, because each may have its bytes with it. */
const batchLength = 64

/**
 * Copies all rows of one catalog into another, empty one, which the caller finishes. Continues an interrupted copy. Marks
 * items as damaged whose ids are given, and those whose bytes in the catalog have another hash; returns the latter.
 * `onItems` receives how many items the target has. Throws TransferError if the target has other data.
 */
export async function transferRows(parts: {
  readonly source: Omit<CatalogSource, 'close'>
  readonly target: CatalogTarget
  readonly damaged: ReadonlySet<MediaId>
  readonly onItems: (done: number, of: number) => void
}): Promise<{ changed: readonly MediaId[] }> {
  const { source, target, damaged, onItems } = parts
  const changed: MediaId[] = []

  /** With the result of the check of its bytes. */
  function checked(item: TransferredItem): TransferredItem {
    const { id } = item.item
    if (hasChanged(item)) changed.push(id)
    else if (!damaged.has(id)) return item
    return { ...item, isDamaged: true }
  }

  const state = await source.state()
  let last: ItemPosition | null = await target.begin(state, await source.buckets())
  await target.addTokens(await source.tokens())
  await target.setKeys(await source.keys())
  const all = await source.countItems()
  let done = last === null ? 0 : await source.countItems(last)
  onItems(done, all)
  for (;;) {
    const items = await source.items(last, batchLength)
    if (items.length === 0) break
    await target.addItems(items.map(checked))
    last = items.at(-1) ?? null
    done += items.length
    onItems(done, all)
  }
  for await (const requests of source.requests()) await target.addRequests(requests)
  // Commands can have revoked tokens, changed limits and removed keys since the transfer began.
  await target.begin(state, await source.buckets())
  await target.addTokens(await source.tokens())
  await target.setKeys(await source.keys())
  return { changed }
}

const hasChanged = ({ bytes, item: { sha256 } }: TransferredItem): boolean =>
  bytes !== null && sha256 !== null && !hash('sha256', bytes, 'buffer').equals(sha256)
