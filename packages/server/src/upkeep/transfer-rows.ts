import { hash } from 'node:crypto'
import type { CatalogRows, CatalogTarget, ItemPosition, TransferredItem } from '../catalog/transfer.ts'
import { type ItemId, isItemId } from '../core/media-id.ts'
import type { CopyFault } from './copy-faults.ts'
import type { FaultyItem } from './faulty-items.ts'

/** Items in one transaction of the target: a few megabytes at most, because each may have its bytes with it. */
const batchLength = 64

/**
 * Copies all rows of one catalog into another, empty one, which the caller finishes. Continues an interrupted copy. Marks
 * items as damaged whose ids are given, those whose bytes in the catalog have another hash, and those with malformed ids; returns the latter two.
 * `onItems` receives how many items the target has. Throws TransferError if the target has other data.
 */
export async function transferRows(parts: {
  readonly source: CatalogRows
  readonly target: CatalogTarget
  readonly damaged: ReadonlySet<ItemId>
  readonly onItems: (done: number, of: number) => void
  /** Called when everything but the latest changes of buckets, tokens and keys is copied. */
  readonly onCopied?: () => Promise<void>
}): Promise<readonly FaultyItem[]> {
  const { source, target, damaged, onItems, onCopied } = parts
  const faulty: FaultyItem[] = []

  /** With the result of the check of its bytes. */
  function checked(item: TransferredItem): TransferredItem {
    const { id } = item.item
    const what = faultOf(item)
    if (what !== null) faulty.push({ id, what })
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
  await target.clearEvents()
  for await (const events of source.events()) await target.addEvents(events)
  await onCopied?.()
  // Commands can have revoked tokens, changed limits and removed keys since the transfer began.
  await target.begin(state, await source.buckets())
  await target.addTokens(await source.tokens())
  await target.setKeys(await source.keys())
  return faulty
}

function faultOf({ bytes, item: { id, sha256 } }: TransferredItem): CopyFault | null {
  if (!isItemId(id)) return 'malformed'
  const isIntact = bytes === null || hash('sha256', bytes, 'buffer').equals(sha256)
  return isIntact ? null : 'changed'
}
