import { hash } from 'node:crypto'
import { type ItemId, isItemId } from '../core/ids.ts'
import type { BlobStore } from '../storage/blobs/blobs.ts'
import type { CatalogInspection } from '../storage/catalog/checks/inspection.ts'
import {
  type CatalogRows,
  type CatalogSource,
  type CatalogTarget,
  type ItemPosition,
  sourceChanged,
  type TransferredItem,
} from '../storage/catalog/transfer.ts'
import { type CopyFault, type CopyResult, copyBlobs, type FaultyItem } from './copies.ts'

interface Migrated {
  /** Null if the bytes stay where they are. */
  readonly bytes: CopyResult | null
  /** How many rows were moved; null if they stay where they are. */
  readonly items: number | null
  /** Items without bytes in the target. They are marked as damaged if their rows were moved. */
  readonly faulty: readonly FaultyItem[]
}

/**
 * Moves rows, bytes or both to other engines: first the bytes, then the rows, and then the target can be used. Before that, the
 * source is closed for every other process. Continues an interrupted migration. Throws TransferError if the source changes during the migration, or if the target has
 * other data.
 */
export async function migrate(parts: {
  readonly source: CatalogSource
  readonly inspection: Pick<CatalogInspection, 'items' | 'content'>
  /** Null if the rows stay where they are. */
  readonly target: CatalogTarget | null
  /** The settings of the target, for people who use the source later. */
  readonly settings: string
  /** Null if the bytes stay where they are. */
  readonly blobs: { readonly from: Pick<BlobStore, 'open'>; readonly to: BlobStore } | null
  /** Marks the bytes of the source as moved, if a service could start on them otherwise. Called before the target can be used. */
  readonly markBytes: () => Promise<void>
  readonly onBytes: (done: number, of: number) => void
  readonly onRows: (done: number, of: number) => void
}): Promise<Migrated> {
  const { source, inspection, target, settings, blobs, markBytes, onBytes, onRows } = parts
  const state = await source.state()
  const all = await source.countItems()
  // From here on no service starts on the target. A target that has other data is refused before any byte is copied.
  await target?.begin(state, [])
  let done = 0
  const bytes = blobs && (await copyBlobs({ ...blobs, inspection, onItem: () => onBytes(++done, all) }))
  await requireUnchanged(source, state)
  if (target === null) {
    // First the mark: a service that starts on these bytes has then read an earlier fence.
    await markBytes()
    await source.moveBytes(state)
    return { bytes, items: null, faulty: bytes?.faulty ?? [] }
  }

  const damaged = new Set<ItemId>(bytes?.faulty.map(({ id }) => id))
  const found = await transferRows({
    ...{ source, target, damaged, onItems: onRows },
    async onCopied() {
      await source.moveTo(settings, state)
      await markBytes()
    },
  })
  await target.finish()
  const faulty = [...(bytes?.faulty ?? []), ...found.filter(({ id }) => !damaged.has(id))]
  return { bytes, items: all, faulty }
}

async function requireUnchanged(source: CatalogSource, state: string): Promise<void> {
  if ((await source.state()) !== state) throw sourceChanged()
}

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
  /** Called when everything but the latest changes of buckets, tokens, keys and webhooks is copied. */
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
  const identity = await source.dataIdentity()
  if (identity !== null) await target.setDataIdentity(identity)
  await target.addTokens(await source.tokens())
  await target.setKeys(await source.keys())
  await target.setWebhooks(await source.webhooks())
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
  await target.beginUsage(await source.deletedBuckets())
  for await (const usage of source.usage()) await target.addUsage(usage)
  await onCopied?.()
  // Commands can have revoked tokens, changed limits and removed keys since the transfer began.
  await target.begin(state, await source.buckets())
  await target.addTokens(await source.tokens())
  await target.setKeys(await source.keys())
  await target.setWebhooks(await source.webhooks())
  return faulty
}

function faultOf({ bytes, item: { id, sha256 } }: TransferredItem): CopyFault | null {
  if (!isItemId(id)) return 'malformed'
  const isIntact = bytes === null || hash('sha256', bytes, 'buffer').equals(sha256)
  return isIntact ? null : 'changed'
}
