import type { ItemId } from '../core/media-id.ts'
import type { UploadId } from '../core/upload-id.ts'

/** An entry in the store's directories. `size` is in bytes; `path` is relative to the data directory. */
export type BlobEntry = { readonly path: string } & (
  | { readonly kind: 'stored'; readonly id: ItemId; readonly size: number }
  /** A variant of the item with this id. */
  | { readonly kind: 'variant'; readonly id: ItemId; readonly size: number }
  /** A file that is being received, or that a killed process left. */
  | { readonly kind: 'temporary'; readonly size: number }
  /** The received part of a resumable upload. */
  | { readonly kind: 'partial'; readonly id: UploadId; readonly size: number }
  /** Not created by the store. */
  | { readonly kind: 'foreign' }
)

/** What fsck needs of the store. All of it works while a server is running. */
export interface BlobAudit {
  entries(): AsyncIterable<BlobEntry>

  /** False if the entry was removed in the meantime. */
  exists(entry: BlobEntry): Promise<boolean>

  /**
   * Moves an entry to `lost+found/`, under a name with its kind and its id. Returns the new path; null if the entry was
   * removed in the meantime. Never replaces a file.
   */
  quarantine(entry: BlobEntry): Promise<string | null>

  /** Writes bytes of the catalog to `lost+found/`, under a new name that starts with `name`. Returns its path. */
  setAside(name: string, bytes: Uint8Array): Promise<string>
}
