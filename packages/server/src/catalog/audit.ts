import type { MediaId } from '../core/media-id.ts'
import type { BucketId } from './catalog.ts'

/** An item as a check of the data sees it. */
export interface AuditedItem {
  readonly bucketId: BucketId
  /** Its place in the bucket; with the bucket it tells where to go on. */
  readonly seq: number
  readonly id: MediaId
  /** Bytes. */
  readonly size: number
  /** Null for items that were seeded without bytes. */
  readonly sha256: Uint8Array | null
  /** An earlier check found its bytes changed. */
  readonly damaged: boolean
}

/** Something that a bucket keeps beside its items and that does not agree with them. */
export interface BucketFault {
  readonly bucket: string
  readonly what: 'total' | 'bytes' | 'reserved' | 'sequence' | 'ranks'
  /** For people: what is stored, and what the rows say. */
  readonly detail: string
}

/** What only a check, a backup and a restore ask of the rows; all of it works beside a running server. */
export interface CatalogAudit {
  /** What the engine itself finds wrong with its files; empty when they are sound. */
  damages(): Promise<string[]>

  count(): Promise<{ items: number; bytes: number }>

  /** Up to `limit` items that follow this one, from the first where it is null. */
  items(after: Pick<AuditedItem, 'bucketId' | 'seq'> | null, limit: number): Promise<AuditedItem[]>

  /** Those of the ids that nothing names: no item, no tombstone, no unfinished upload in pieces. */
  findUnreferenced(ids: readonly MediaId[]): Promise<MediaId[]>

  /**
   * The same, looked up within a transaction that forbids for ever that any of those it answers becomes an item's:
   * from then on their bytes can be moved, whatever uploads are under way.
   */
  retire(ids: readonly MediaId[]): Promise<MediaId[]>

  /** Marks items whose bytes are not what was sent; those that are gone meanwhile are passed over. */
  mark(ids: readonly MediaId[]): Promise<void>

  unmark(ids: readonly MediaId[]): Promise<void>

  /** Counts the rows of each bucket again, in a snapshot of its own. */
  bucketFaults(): Promise<BucketFault[]>

  /** The same; a bucket that is wrong is counted and corrected in one transaction of its own. Returns what was wrong. */
  recount(): Promise<BucketFault[]>

  /** Writes a copy of all rows, as of one moment, into a directory that exists and holds none. Not synced. */
  snapshot(directory: string): Promise<void>

  /** Makes a restored copy a body of data of its own: another epoch, no unfinished uploads, no tombstones. */
  renew(): Promise<void>

  close(): Promise<void>
}
