import type { MediaId } from '../core/media-id.ts'
import type { UploadId } from '../core/upload-id.ts'

/** One thing that stands where the store keeps its bytes; `size` is in bytes, `path` says where it stands. */
export type BlobEntry = { readonly path: string } & (
  | { readonly kind: 'kept'; readonly id: MediaId; readonly size: number }
  /** What was made of the bytes that are kept under this id. */
  | { readonly kind: 'variant'; readonly id: MediaId; readonly size: number }
  /** Bytes on their way in, or left behind by a process that ended. */
  | { readonly kind: 'temporary'; readonly size: number }
  /** What has arrived of an upload in pieces. */
  | { readonly kind: 'part'; readonly id: UploadId; readonly size: number }
  /** Nothing that the store would have put there. */
  | { readonly kind: 'foreign' }
)

/** What only a check asks of the bytes; all of it works beside a running server. */
export interface BlobAudit {
  entries(): AsyncIterable<BlobEntry>

  /** False when it has gone meanwhile. */
  exists(entry: BlobEntry): Promise<boolean>

  /**
   * Moves what was found to where nothing looks, under a name that tells its kind and its id; answers the new path,
   * null when it has gone meanwhile. Never replaces anything.
   */
  quarantine(found: BlobEntry): Promise<string | null>
}
