import type { BlobStore } from '../blobs/blobs.ts'
import type { CatalogAudit } from '../catalog/audit.ts'
import { type CatalogSource, type CatalogTarget, TransferError } from '../catalog/transfer.ts'
import type { ItemId } from '../core/media-id.ts'
import { type CopyResult, copyBlobs } from './copy-blobs.ts'
import type { FaultyItem } from './faulty-items.ts'
import { transferRows } from './transfer-rows.ts'

interface Migrated {
  /** Null if the bytes stay where they are. */
  readonly bytes: CopyResult | null
  /** How many rows were moved; null if they stay where they are. */
  readonly items: number | null
  /** Items without bytes in the target. They are marked as damaged if their rows were moved. */
  readonly faulty: readonly FaultyItem[]
}

/**
 * Moves rows, bytes or both to other engines: first the bytes, then the rows, and then the target can be used. Before that, a source
 * whose rows move is closed for every other process. Continues an interrupted migration. Throws TransferError if the source changes during the migration, or if the target has
 * other data.
 */
export async function migrate(parts: {
  readonly source: CatalogSource
  readonly audit: Pick<CatalogAudit, 'items' | 'content'>
  /** Null if the rows stay where they are. */
  readonly target: CatalogTarget | null
  /** The settings of the target, for people who use the source later. */
  readonly settings: string
  /** Null if the bytes stay where they are. */
  readonly blobs: { readonly from: Pick<BlobStore, 'open'>; readonly to: BlobStore } | null
  /** Called when the source is closed, before the target can be used. */
  readonly onClosed: () => Promise<void>
  readonly onBytes: (done: number, of: number) => void
  readonly onRows: (done: number, of: number) => void
}): Promise<Migrated> {
  const { source, audit, target, settings, blobs, onClosed, onBytes, onRows } = parts
  const state = await source.state()
  const all = await source.countItems()
  // From here on no service starts on the target. A target that has other data is refused before any byte is copied.
  await target?.begin(state, [])
  let done = 0
  const bytes = blobs && (await copyBlobs({ ...blobs, audit, onItem: () => onBytes(++done, all) }))
  await requireUnchanged(source, state)
  if (target === null) return { bytes, items: null, faulty: bytes?.faulty ?? [] }

  const damaged = new Set<ItemId>(bytes?.faulty.map(({ id }) => id))
  const found = await transferRows({
    ...{ source, target, damaged, onItems: onRows },
    async onCopied() {
      await requireUnchanged(source, state)
      await source.setMovedTo(settings)
      await onClosed()
    },
  })
  await target.finish()
  const faulty = [...(bytes?.faulty ?? []), ...found.filter(({ id }) => !damaged.has(id))]
  return { bytes, items: all, faulty }
}

async function requireUnchanged(source: CatalogSource, state: string): Promise<void> {
  if ((await source.state()) === state) return
  throw new TransferError(
    'The source has changed during the migration. Stop every service that uses it, and run the same command again.',
  )
}
