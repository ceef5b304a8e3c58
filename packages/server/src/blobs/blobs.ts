import type { Readable } from 'node:stream'
import type { MediaId } from '../core/media-id.ts'
import type { UploadId } from '../core/upload-id.ts'
import type { Variant } from '../core/variant.ts'

/** Bytes that arrived whole, but stand under no id yet; until they are kept they may be lost. */
export interface ReceivedBlob {
  /** Names the bytes inside their store; meaningless outside it. */
  readonly handle: string
  /** Bytes. */
  readonly size: number
  /** 32 bytes. */
  readonly sha256: Uint8Array
  /** The first bytes, at least `headLength` where there are so many, for sniffing the type; gone once the blob is kept. */
  readonly head: Uint8Array
}

/** What the sniffer's signatures need; each large upload under way holds as much. Bytes. */
export const headLength = 4_100

/** Bytes opened for reading: exactly `size` of them. Either `stream` is called once, or `close` at the end. */
export interface OpenBlob {
  readonly size: number
  /** Where another program of this machine can read them. */
  readonly path: string
  /** Fills `into` with the bytes from `position` on; one call at a time. Rejects when they end before it is full. */
  read(into: Uint8Array, position: number): Promise<void>
  /** Bytes `start` to `end`, both inclusive; closes the blob when it ends or is destroyed. */
  stream(start: number, end: number): Readable
  /** Waits for a read that is running; closing twice is fine. */
  close(): Promise<void>
}

/** What has come of writing to a part. */
interface Appended {
  /** Bytes that the part has now, all of them synced. */
  readonly size: number
  /** Why the rest of the source is not among them: what the source threw, or Fault `storage-full`; null if it all is. */
  readonly failure: unknown
}

/** The directory of the blobs does not belong to the catalog. The message is one line and says what to do. */
export class BlobsMismatchError extends Error {
  override readonly name = 'BlobsMismatchError'
}

/** Bytes of the part are missing, or the disk would not promise to keep them. The part is gone; it must be begun anew. */
export class PartialUploadLost extends Error {
  override readonly name = 'PartialUploadLost'
}

/** Files that arrive in pieces, in any number of requests, each under the id of its upload. */
export interface PartialUploadStore {
  /**
   * Streams `source` behind the first `offset` bytes, dropping whatever stood there, and syncs what has arrived even
   * where the source fails. One call at a time for each id. Throws Fault `file-too-large` above `limit` bytes, and then
   * none of them count; throws PartialUploadLost.
   */
  append(
    id: UploadId,
    piece: { offset: number; source: AsyncIterable<Uint8Array>; limit: number },
  ): Promise<Appended>

  /** All `size` bytes of a part, as bytes received and not kept yet. Throws PartialUploadLost. */
  complete(id: UploadId, size: number): Promise<ReceivedBlob>

  /** Takes back a part that was kept under `mediaId`; none there is fine. */
  reclaim(id: UploadId, mediaId: MediaId): Promise<void>

  /** Drops the part; none there is fine. */
  remove(id: UploadId): Promise<void>

  /**
   * Makes the parts what they should be, and drops all others: takes those back that were kept, cuts those that are
   * longer than their offset, and answers the sizes of those that are shorter. Only while no other process writes.
   */
  recover(
    parts: readonly { readonly id: UploadId; readonly mediaId: MediaId; readonly offset: number }[],
  ): Promise<Map<UploadId, number>>
}

/** What was made of the bytes and can be made anew, each under the id of its item. */
export interface VariantStore {
  /** All of it or nothing, in the place of what stood there; it would survive a power cut, or be gone. */
  store(id: MediaId, variant: Variant, bytes: Uint8Array): Promise<void>

  /** As `BlobStore.open`. */
  open(id: MediaId, variant: Variant): Promise<OpenBlob | null>

  /** Removes all variants of the item; none there is fine. `BlobStore.remove` does so too. */
  remove(id: MediaId): Promise<void>
}

/** The bytes. Every promise of a change resolves only when the change would survive a power cut. */
export interface BlobStore {
  readonly partialUploads: PartialUploadStore
  readonly variants: VariantStore

  /**
   * Streams `source` into temporary bytes, hashing and counting in passing; none but a few small ones are ever held
   * whole. `atMost` is the size of the source, where that is known beforehand; null otherwise. Throws Fault `file-too-large` above `limit` bytes
   * and `storage-full`; whatever it throws, nothing is left behind.
   */
  receive(
    source: AsyncIterable<Uint8Array>,
    bounds: { readonly limit: number; readonly atMost: number | null },
  ): Promise<ReceivedBlob>

  /** The received bytes, readable at random, for sniffing inside containers. */
  peek(blob: ReceivedBlob): Promise<Blob>

  /** Received bytes for another program of this machine: where it can read them, or they themselves. */
  contentOf(blob: ReceivedBlob): string | Uint8Array

  /**
   * Puts received bytes in place under `id`, which was never used before. Until `settle` or `remove` is called, a start
   * after a crash finds them by `orphanCandidates`.
   */
  commit(blob: ReceivedBlob, id: MediaId): Promise<void>

  /** False while the directory of the bytes is not the one that belongs to the catalog. */
  isReachable(): boolean

  /** The rows of these ids are committed. */
  markCommitted(ids: readonly MediaId[]): void

  /** Ids of bytes for which an earlier process did not call `settle`, among others that were stored beside them. */
  orphanCandidates(): Promise<MediaId[]>

  /** Each of them has its row, or is removed. */
  clearOrphanCandidates(): void

  /** Drops received bytes that were not kept. */
  discard(blob: ReceivedBlob): Promise<void>

  /**
   * Null when nothing stands under `id`. Throws Fault `media-unknown` when what stands there, or a directory on the
   * way, is a link or no regular file: it was not put there by the store and is never followed (docs/interface.md B8).
   */
  open(id: MediaId): Promise<OpenBlob | null>

  /** Removes the bytes under `id`, and then their variants; none there is fine. */
  remove(id: MediaId): Promise<void>

  /** Drops temporary bytes that an earlier process left behind; says how many. Only while no other process writes. */
  recover(): Promise<number>

  /** Finishes what is being kept. Nothing can be kept any more. */
  close(): Promise<void>
}
