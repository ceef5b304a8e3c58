import type { MediaId } from '../core/media-id.ts'
import type { BucketId, ContentId } from './records.ts'
import { bytesOrNull, integer, integerOrNull, type Row, text } from './rows.ts'

/** An item, as checks of the data read it. */
export interface AuditedItem {
  readonly bucketId: BucketId
  /** Its sequence number in the bucket; with the bucket, the position to continue from. */
  readonly seq: number
  readonly id: MediaId
  /** Bytes. */
  readonly size: number
  /** Null for items that were seeded without bytes. */
  readonly sha256: Uint8Array | null
  /** An earlier check found its bytes changed. */
  readonly damaged: boolean
  /** Its bytes in the catalog; null if they are in the blob store. */
  readonly contentId: ContentId | null
}

/** A stored counter, or the time of the next expiry, of a bucket that does not match its rows. */
export interface BucketFault {
  readonly bucket: string
  readonly what: 'total' | 'bytes' | 'reserved' | 'sequence' | 'expiry' | 'ranks'
  /** A message with the stored value and that of the rows. */
  readonly detail: string
}

/** What the engine's own check of its files finds; all lists are empty if they are intact. */
export interface CatalogDamage {
  readonly details: readonly string[]
  /** Items whose rows cannot be read. */
  readonly rows: readonly MediaId[]
  /** Items whose rows can be read, but not their bytes in the catalog. */
  readonly bytes: readonly MediaId[]
}

/** Operations of checks; all of them are safe while a server is running. */
export interface CatalogAudit {
  damage(): Promise<CatalogDamage>

  count(): Promise<{ items: number; bytes: number }>

  /** Up to `limit` items after this one, or from the first if it is null. */
  items(after: Pick<AuditedItem, 'bucketId' | 'seq'> | null, limit: number): Promise<AuditedItem[]>

  /** As `Catalog.content`. */
  content(id: ContentId): Promise<Uint8Array<ArrayBuffer> | null>

  /** Bytes in the catalog that no item has. */
  orphanedContents(): Promise<ContentId[]>

  removeContents(ids: readonly ContentId[]): Promise<void>

  /** Returns the ids that no item, tombstone or unfinished upload has. */
  findUnreferenced(ids: readonly MediaId[]): Promise<MediaId[]>

  /**
   * As findUnreferenced, in a transaction that permanently reserves the returned ids: no item can have them, so their bytes can be
   * moved while uploads are running.
   */
  retire(ids: readonly MediaId[]): Promise<MediaId[]>

  /** Marks items whose bytes have changed; ignores the ids of deleted items. */
  markDamaged(ids: readonly MediaId[]): Promise<void>

  unmarkDamaged(ids: readonly MediaId[]): Promise<void>

  /** Compares the counters of each bucket with its rows, in one snapshot for each bucket. */
  bucketFaults(): Promise<BucketFault[]>

  /** Also corrects the counters, in one transaction for each bucket. Returns the corrected faults. */
  recount(): Promise<BucketFault[]>

  close(): Promise<void>
}

/** What a snapshot does not have, because it is on damaged pages. */
export interface MissingRows {
  readonly items: readonly MediaId[]
  /** Whether events of the audit log are missing. */
  readonly hasLostEvents: boolean
}

/** A catalog in a directory, which backups and restores copy. */
export interface CopyableAudit extends CatalogAudit {
  /**
   * Writes a snapshot of all rows into an existing directory without a catalog. Not synced. Rows and bytes of items on damaged pages are
   * taken from an earlier snapshot, or left out, and so are events on them. Bytes that are missing are not in the result.
   */
  snapshot(directory: string, earlier: string | null): Promise<MissingRows>

  /** Makes a restored copy independent: a new epoch, no unfinished uploads, tombstones and intents. */
  renew(): Promise<void>
}

const itemsPerRead = 500

/** All items, in batches. Each batch is one read, so no snapshot stays open between them. */
export async function* itemBatches(audit: Pick<CatalogAudit, 'items'>): AsyncGenerator<AuditedItem[]> {
  let last: AuditedItem | null = null
  for (;;) {
    const items: AuditedItem[] = await audit.items(last, itemsPerRead)
    if (items.length > 0) yield items
    if (items.length < itemsPerRead) return
    last = items.at(-1) ?? null
  }
}

/** Reads bucket, number, id, size, hash, 1 if it is damaged, and the number of its bytes in the catalog. */
export const readAuditedItem = (row: Row): AuditedItem => ({
  bucketId: integer(row, 0) as BucketId,
  seq: integer(row, 1),
  id: text(row, 2) as MediaId,
  size: integer(row, 3),
  sha256: bytesOrNull(row, 4),
  damaged: integer(row, 5) === 1,
  contentId: integerOrNull(row, 6) as ContentId | null,
})

/**
 * Describes the fault of the stored time of the next expiry; null if there is none. A time before the first expiry of the items is no fault:
 * deletions do not change the stored time, and the first request after this time corrects it.
 */
export function lateExpiry(stored: number | null, first: number | null): string | null {
  if (first === null || (stored !== null && stored <= first)) return null
  const textOf = (time: number | null) => (time === null ? 'no expiry' : new Date(time).toISOString())
  return `${textOf(stored)} is stored, the first item expires at ${textOf(first)}`
}
